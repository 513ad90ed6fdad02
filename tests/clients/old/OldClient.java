// Carries out the tasks of tests/clients/program.py with an old Kafka client: a line of JSON in and one out.

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.ApiException;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

public class OldClient {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final int BEGINNING = -2;
    private static final int END = -1;

    private String topic; // of the open reader
    private KafkaConsumer<byte[], byte[]> consumer;
    private final List<ConsumerRecord<byte[], byte[]>> polled = new ArrayList<>();

    public static void main(String[] args) throws Exception {
        OldClient client = new OldClient();
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        System.setOut(System.err); // for the log
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            out.println(JSON.writeValueAsString(client.answer(JSON.readTree(line))));
        }
    }

    private Map<String, Object> answer(JsonNode task) {
        Map<String, Object> answer = new HashMap<>();
        try {
            answer.put("done", perform(task));
        } catch (Exception failure) {
            Throwable cause = failure instanceof ExecutionException ? failure.getCause() : failure;
            if (cause instanceof ApiException) {
                answer.put("refused", Errors.forException(cause).code());
                answer.put("why", cause.toString());
            } else {
                answer.put("failed", cause.toString());
            }
        }
        return answer;
    }

    private Object perform(JsonNode task) throws Exception {
        switch (task.get("do").asText()) {
            case "send":
                return send(task);
            case "open":
                open(task, Map.of());
                return true;
            case "close":
                consumer.close();
                return true;
            case "assign":
                return assign(task.get("starts"));
            case "seek":
                polled.clear();
                consumer.seek(partition(task), task.get("offset").asLong());
                return true;
            case "take":
                return take(task.get("count").asInt(), task.get("patience").asLong());
            case "watermarks":
                return List.of(
                        consumer.beginningOffsets(List.of(partition(task))).get(partition(task)),
                        consumer.endOffsets(List.of(partition(task))).get(partition(task)));
            case "resume":
                return resume(task);
            default:
                throw new IllegalArgumentException(task.get("do").asText());
        }
    }

    private List<Long> send(JsonNode task) throws Exception {
        Map<String, Object> settings = new HashMap<>();
        settings.put("bootstrap.servers", task.get("bootstrap").asText());
        settings.put("compression.type", task.get("codec").asText());
        settings.put("acks", task.get("acks").asText());
        settings.put("linger.ms", 20);
        settings.put("max.request.size", task.get("request_bytes").asInt());
        if (task.hasNonNull("batch_bytes")) {
            settings.put("batch.size", task.get("batch_bytes").asInt());
        }
        Integer partition = task.hasNonNull("partition") ? task.get("partition").asInt() : null;
        ByteArraySerializer bytes = new ByteArraySerializer();
        List<Long> offsets = new ArrayList<>();
        try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(settings, bytes, bytes)) {
            List<Future<RecordMetadata>> sent = new ArrayList<>();
            for (JsonNode row : task.get("rows")) {
                sent.add(producer.send(new ProducerRecord<>(task.get("topic").asText(), partition,
                        row.get("timestamp").asLong(), binary(row.get("key")), binary(row.get("value")))));
            }
            for (Future<RecordMetadata> one : sent) {
                offsets.add(one.get().offset());
            }
        }
        return offsets;
    }

    private void open(JsonNode task, Map<String, Object> more) {
        Map<String, Object> settings = new HashMap<>(more);
        settings.put("bootstrap.servers", task.get("bootstrap").asText());
        settings.put("auto.offset.reset", "earliest");
        settings.put("enable.auto.commit", false);
        if (task.hasNonNull("fetch_bytes")) {
            settings.put("max.partition.fetch.bytes", task.get("fetch_bytes").asInt());
        }
        topic = task.get("topic").asText();
        polled.clear();
        ByteArrayDeserializer bytes = new ByteArrayDeserializer();
        consumer = new KafkaConsumer<>(settings, bytes, bytes);
    }

    private Object assign(JsonNode starts) {
        Map<TopicPartition, Long> places = new HashMap<>();
        starts.fields().forEachRemaining(
                start -> places.put(partition(Integer.parseInt(start.getKey())), start.getValue().asLong()));
        consumer.assign(places.keySet());
        places.forEach((place, start) -> {
            if (start == BEGINNING) {
                consumer.seekToBeginning(List.of(place));
            } else if (start == END) {
                consumer.seekToEnd(List.of(place));
                consumer.position(place);
            } else {
                consumer.seek(place, start);
            }
        });
        return true;
    }

    /** Returns the next records, and keeps those polled beyond the count. */
    private List<Object> take(int count, long patience) {
        long deadline = System.currentTimeMillis() + 1000 * patience;
        while (polled.size() < count && System.currentTimeMillis() < deadline) {
            consumer.poll(200).forEach(polled::add);
        }
        List<Object> rows = new ArrayList<>();
        while (rows.size() < count && !polled.isEmpty()) {
            ConsumerRecord<byte[], byte[]> found = polled.remove(0);
            Map<String, Object> row = new HashMap<>();
            row.put("partition", found.partition());
            row.put("offset", found.offset());
            row.put("timestamp", found.timestamp());
            row.put("key", found.key());
            row.put("value", found.value());
            row.put("headers", List.of());
            rows.add(row);
        }
        return rows;
    }

    /** Reads this many records of a topic as a member of a group, from the group's position, and commits them. */
    private List<Object> resume(JsonNode task) {
        int count = task.get("count").asInt();
        open(task, Map.of("group.id", task.get("group").asText(), "max.poll.records", count));
        try {
            consumer.subscribe(List.of(topic));
            List<Object> rows = take(count, task.get("patience").asLong());
            consumer.commitSync();
            return rows;
        } finally {
            consumer.close();
        }
    }

    private TopicPartition partition(JsonNode task) {
        return partition(task.get("partition").asInt());
    }

    private TopicPartition partition(int index) {
        return new TopicPartition(topic, index);
    }

    private static byte[] binary(JsonNode text) throws Exception {
        return text.isNull() ? null : text.binaryValue();
    }
}
