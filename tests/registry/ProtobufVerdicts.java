// Confluent's own verdicts: reads one JSON object a line {"level","old":[texts],"new"}, prints one a line
// {"canonical", "compatible"} or {"error"}.
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.confluent.kafka.schemaregistry.CompatibilityChecker;
import io.confluent.kafka.schemaregistry.CompatibilityLevel;
import io.confluent.kafka.schemaregistry.ParsedSchema;
import io.confluent.kafka.schemaregistry.protobuf.ProtobufSchema;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.util.ArrayList;
import java.util.List;

public class ProtobufVerdicts {
  public static void main(String[] args) throws Exception {
    ObjectMapper json = new ObjectMapper();
    PrintStream out = new PrintStream(System.out, true, "UTF-8");
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
    String line;
    while ((line = in.readLine()) != null) {
      JsonNode question = json.readTree(line);
      ObjectNode answer = json.createObjectNode();
      try {
        ProtobufSchema schema = new ProtobufSchema(question.get("new").asText());
        answer.put("canonical", schema.canonicalString());
        List<ParsedSchema> old = new ArrayList<>();
        for (JsonNode each : question.get("old")) {
          old.add(new ProtobufSchema(each.asText()));
        }
        CompatibilityLevel level = CompatibilityLevel.valueOf(question.get("level").asText());
        List<String> found = CompatibilityChecker.checker(level).isCompatible(schema, old);
        answer.put("compatible", found.isEmpty());
        answer.put("messages", String.join("\n", found));
      } catch (Throwable refused) {
        answer.put("error", String.valueOf(refused.getMessage()));
      }
      out.println(json.writeValueAsString(answer));
    }
  }
}
