// Confluent's Java serializers, asked by lines of JSON: see serde_strangers.py for the questions.

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.google.protobuf.DynamicMessage;
import com.google.protobuf.util.JsonFormat;
import io.confluent.kafka.schemaregistry.client.CachedSchemaRegistryClient;
import io.confluent.kafka.schemaregistry.client.SchemaRegistryClient;
import io.confluent.kafka.schemaregistry.protobuf.ProtobufSchema;
import io.confluent.kafka.schemaregistry.protobuf.ProtobufSchemaProvider;
import io.confluent.kafka.schemaregistry.avro.AvroSchemaProvider;
import io.confluent.kafka.serializers.KafkaAvroDeserializer;
import io.confluent.kafka.serializers.KafkaAvroSerializer;
import io.confluent.kafka.serializers.protobuf.KafkaProtobufDeserializer;
import io.confluent.kafka.serializers.protobuf.KafkaProtobufSerializer;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericData;
import org.apache.avro.generic.GenericDatumReader;
import org.apache.avro.generic.GenericEnumSymbol;
import org.apache.avro.generic.GenericFixed;
import org.apache.avro.generic.GenericRecord;
import org.apache.avro.io.DecoderFactory;

public class JavaSerde {
  private static final ObjectMapper JSON = new ObjectMapper();

  public static void main(String[] arguments) throws Exception {
    SchemaRegistryClient client = new CachedSchemaRegistryClient(
        List.of(arguments[0]), 100, List.of(new AvroSchemaProvider(), new ProtobufSchemaProvider()), Map.of());
    Map<String, Object> config = Map.of("schema.registry.url", arguments[0]);
    BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
    for (String line = lines.readLine(); line != null; line = lines.readLine()) {
      ObjectNode found = JSON.createObjectNode();
      try {
        JsonNode asked = JSON.readTree(line);
        if (asked.get("op").asText().equals("write")) {
          found.put("bytes", write(client, config, asked));
        } else if (asked.get("op").asText().equals("resolve")) {
          found.set("value", resolve(asked));
        } else {
          found.set("value", read(client, config, asked));
        }
      } catch (Throwable wrong) {
        Throwable cause = wrong.getCause() == null ? wrong : wrong.getCause();
        found.put("error", wrong + ": " + cause);
      }
      System.out.println(found);
    }
  }

  // Serializers take a topic and name the subject after it.
  private static String topic(JsonNode asked) {
    return asked.get("subject").asText().replaceAll("-value$", "");
  }

  private static byte[] write(SchemaRegistryClient client, Map<String, Object> config, JsonNode asked)
      throws Exception {
    String text = asked.get("schema").asText();
    if (asked.get("type").asText().equals("AVRO")) {
      try (KafkaAvroSerializer serializer = new KafkaAvroSerializer(client, config)) {
        return serializer.serialize(topic(asked), typed(new Schema.Parser().parse(text), asked.get("value")));
      }
    }
    DynamicMessage.Builder message = new ProtobufSchema(text).newMessageBuilder();
    JsonFormat.parser().merge(asked.get("value").toString(), message);
    try (KafkaProtobufSerializer<DynamicMessage> serializer = new KafkaProtobufSerializer<>(client, config)) {
      return serializer.serialize(topic(asked), message.build());
    }
  }

  private static JsonNode read(SchemaRegistryClient client, Map<String, Object> config, JsonNode asked)
      throws Exception {
    byte[] data = asked.get("bytes").binaryValue();
    if (asked.get("type").asText().equals("AVRO")) {
      Schema reader = asked.hasNonNull("schema") ? new Schema.Parser().parse(asked.get("schema").asText()) : null;
      try (KafkaAvroDeserializer deserializer = new KafkaAvroDeserializer(client, config)) {
        return JSON.valueToTree(plain(deserializer.deserialize(topic(asked), data, reader)));
      }
    }
    try (KafkaProtobufDeserializer<DynamicMessage> deserializer = new KafkaProtobufDeserializer<>(client, config)) {
      return JSON.readTree(JsonFormat.printer().print(deserializer.deserialize(topic(asked), data)));
    }
  }

  // Avro's own schema resolution, without a registry.
  private static JsonNode resolve(JsonNode asked) throws Exception {
    Schema writer = new Schema.Parser().parse(asked.get("writer").asText());
    Schema reader = new Schema.Parser().parse(asked.get("schema").asText());
    GenericDatumReader<Object> datums = new GenericDatumReader<>(writer, reader);
    byte[] data = asked.get("bytes").binaryValue();
    return JSON.valueToTree(plain(datums.read(null, DecoderFactory.get().binaryDecoder(data, null))));
  }

  private static Object typed(Schema schema, JsonNode node) {
    switch (schema.getType()) {
      case RECORD:
        GenericRecord row = new GenericData.Record(schema);
        for (Schema.Field field : schema.getFields()) {
          row.put(field.name(), typed(field.schema(), node.get(field.name())));
        }
        return row;
      case ARRAY:
        List<Object> values = new ArrayList<>();
        node.forEach(each -> values.add(typed(schema.getElementType(), each)));
        return values;
      case UNION:
        return node.isNull() ? null : typed(schema.getTypes().get(1), node);
      case INT:
        return node.intValue();
      case LONG:
        return node.longValue();
      case DOUBLE:
        return node.doubleValue();
      case BOOLEAN:
        return node.booleanValue();
      default:
        return node.textValue();
    }
  }

  private static Object plain(Object value) {
    if (value instanceof GenericRecord row) {
      Map<String, Object> found = new HashMap<>();
      for (Schema.Field field : row.getSchema().getFields()) {
        found.put(field.name(), plain(row.get(field.pos())));
      }
      return found;
    }
    if (value instanceof List<?> values) {
      List<Object> found = new ArrayList<>();
      values.forEach(each -> found.add(plain(each)));
      return found;
    }
    if (value instanceof Map<?, ?> entries) {
      Map<String, Object> found = new HashMap<>();
      entries.forEach((name, each) -> found.put(name.toString(), plain(each)));
      return found;
    }
    if (value instanceof ByteBuffer bytes) {
      return HexFormat.of().formatHex(bytes.array(), bytes.position(), bytes.limit());
    }
    if (value instanceof GenericFixed fixed) {
      return HexFormat.of().formatHex(fixed.bytes());
    }
    boolean isText = value instanceof CharSequence || value instanceof GenericEnumSymbol;
    return isText ? value.toString() : value;
  }
}
