// Answers, with Confluent's own classes, one question a line: the canonical and the normalised text of a schema, and what
// keeps it from following an older one. Questions and answers are JSON; lines of answers begin with "@@".

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.confluent.kafka.schemaregistry.CompatibilityLevel;
import io.confluent.kafka.schemaregistry.CompatibilityPolicy;
import io.confluent.kafka.schemaregistry.ParsedSchema;
import io.confluent.kafka.schemaregistry.ParsedSchemaHolder;
import io.confluent.kafka.schemaregistry.SimpleParsedSchemaHolder;
import io.confluent.kafka.schemaregistry.avro.AvroSchema;
import io.confluent.kafka.schemaregistry.json.JsonSchema;
import io.confluent.kafka.schemaregistry.protobuf.ProtobufSchema;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Collections;
import java.util.List;

public class ConfluentVerdicts {
  private static ParsedSchema parse(String type, String text) {
    switch (type) {
      case "JSON":
        return new JsonSchema(text);
      case "PROTOBUF":
        return new ProtobufSchema(text);
      default:
        return new AvroSchema(text, Collections.emptyList(), Collections.emptyMap(), null, true);
    }
  }

  private static void answer(JsonNode question, ObjectNode answer) {
    String type = question.get("type").asText();
    ParsedSchema schema = parse(type, question.get("new").asText());
    schema.validate(false);
    answer.put("canonical", schema.canonicalString());
    answer.put("normalized", schema.normalize().canonicalString());
    if (question.has("old")) {
      List<ParsedSchemaHolder> old =
          Collections.singletonList(new SimpleParsedSchemaHolder(parse(type, question.get("old").asText())));
      CompatibilityLevel level = CompatibilityLevel.valueOf(question.get("level").asText());
      CompatibilityPolicy policy = CompatibilityPolicy.valueOf(question.get("policy").asText());
      ArrayNode messages = answer.putArray("messages");
      schema.isCompatible(level, policy, old).forEach(messages::add);
    }
  }

  public static void main(String[] ignored) throws Exception {
    ObjectMapper mapper = new ObjectMapper();
    PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line; (line = in.readLine()) != null; ) {
      ObjectNode answer = mapper.createObjectNode();
      try {
        answer(mapper.readTree(line), answer);
      } catch (Exception refused) {
        answer.put("error", String.valueOf(refused));
      }
      out.println("@@" + mapper.writeValueAsString(answer));
    }
  }
}
