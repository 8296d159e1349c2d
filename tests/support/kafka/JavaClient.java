import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndTimestamp;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** Kafka's Java client behind a line of JSON in, a line of JSON out: one JVM serves a whole test run. Bytes are base64. */
public final class JavaClient {
    private static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] arguments) throws Exception {
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
        for (String line = commands.readLine(); line != null; line = commands.readLine()) {
            ObjectNode answer = JSON.createObjectNode();
            try {
                execute(JSON.readTree(line), answer);
            } catch (ExecutionException failure) {
                answer.put("error", failure.getCause().getClass().getSimpleName());
            } catch (Exception failure) {
                answer.put("error", failure.getClass().getSimpleName() + ": " + failure.getMessage());
            }
            System.out.println(JSON.writeValueAsString(answer));
            System.out.flush();
        }
    }

    private static void execute(JsonNode command, ObjectNode answer) throws Exception {
        switch (command.get("op").asText()) {
            case "produce": produce(command, answer); break;
            case "consume": consume(command, answer); break;
            case "offset_for_time": offsetForTime(command, answer); break;
            default: throw new IllegalArgumentException("unknown op");
        }
    }

    private static Map<String, Object> config(JsonNode command) {
        Map<String, Object> config = new HashMap<>();
        command.get("config").fields().forEachRemaining(e -> config.put(e.getKey(), e.getValue().asText()));
        return config;
    }

    private static KafkaConsumer<byte[], byte[]> consumer(JsonNode command) {
        return new KafkaConsumer<>(config(command), new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }

    private static byte[] bytes(JsonNode node) throws Exception {
        return node == null || node.isNull() ? null : node.binaryValue();
    }

    private static void produce(JsonNode command, ObjectNode answer) throws Exception {
        ArrayNode offsets = answer.putArray("offsets");
        try (KafkaProducer<byte[], byte[]> producer =
                new KafkaProducer<>(config(command), new ByteArraySerializer(), new ByteArraySerializer())) {
            List<Future<RecordMetadata>> sent = new ArrayList<>();
            for (JsonNode record : command.get("records")) {
                List<Header> headers = new ArrayList<>();
                for (JsonNode header : record.get("headers")) {
                    headers.add(new RecordHeader(header.get(0).asText(), bytes(header.get(1))));
                }
                sent.add(producer.send(new ProducerRecord<>(
                        command.get("topic").asText(), command.get("partition").asInt(),
                        record.get("timestamp_ms").asLong(), bytes(record.get("key")), bytes(record.get("value")),
                        headers)));
            }
            producer.flush();
            for (Future<RecordMetadata> future : sent) {
                offsets.add(future.get().offset());
            }
        }
    }

    private static void consume(JsonNode command, ObjectNode answer) throws Exception {
        ArrayNode records = answer.putArray("records");
        int count = command.get("count").asInt();
        long deadline = System.currentTimeMillis() + command.get("timeout_ms").asLong();
        String topic = command.get("topic").asText();
        try (KafkaConsumer<byte[], byte[]> consumer = consumer(command)) {
            boolean inGroup = command.get("config").has("group.id");
            if (inGroup) {
                consumer.subscribe(List.of(topic));
            } else {
                List<TopicPartition> partitions = new ArrayList<>();
                for (PartitionInfo info : consumer.partitionsFor(topic)) {
                    partitions.add(new TopicPartition(topic, info.partition()));
                }
                consumer.assign(partitions);
                consumer.seekToBeginning(partitions);
            }
            while (records.size() < count && System.currentTimeMillis() < deadline) {
                for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(200))) {
                    describe(record, records.addObject());
                }
            }
            if (inGroup) {
                consumer.commitSync();
            }
        }
    }

    private static void describe(ConsumerRecord<byte[], byte[]> record, ObjectNode into) {
        into.put("partition", record.partition()).put("offset", record.offset());
        into.put("timestamp_ms", record.timestamp()).put("key", record.key()).put("value", record.value());
        ArrayNode headers = into.putArray("headers");
        for (Header header : record.headers()) {
            headers.addArray().add(header.key()).add(header.value());
        }
    }

    private static void offsetForTime(JsonNode command, ObjectNode answer) {
        try (KafkaConsumer<byte[], byte[]> consumer = consumer(command)) {
            TopicPartition partition = new TopicPartition(command.get("topic").asText(), command.get("partition").asInt());
            OffsetAndTimestamp found =
                    consumer.offsetsForTimes(Map.of(partition, command.get("timestamp_ms").asLong())).get(partition);
            answer.put("offset", found == null ? null : (Long) found.offset());
        }
    }
}
