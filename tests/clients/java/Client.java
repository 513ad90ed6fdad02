// Carries out the tasks of tests/clients/program.py with Kafka's own client: a line of JSON in and one out.

import com.fasterxml.jackson.core.type.TypeReference;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.stream.Collectors;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.errors.ApiException;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

public class Client {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final int UNKNOWN_TOPIC_PATIENCE_MS = 5_000;

    private String topic; // of the open reader
    private KafkaConsumer<byte[], byte[]> consumer;
    private final List<ConsumerRecord<byte[], byte[]>> polled = new ArrayList<>();

    public static void main(String[] args) throws Exception {
        Client client = new Client();
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
            Throwable cause = failure;
            while (cause.getCause() != null
                    && (cause instanceof ExecutionException || cause instanceof CompletionException)) {
                cause = cause.getCause();
            }
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
                return open(task);
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
                return take(task.get("count").asInt(), Duration.ofSeconds(task.get("patience").asLong()));
            case "watermarks":
                return List.of(
                        consumer.beginningOffsets(List.of(partition(task))).get(partition(task)),
                        consumer.endOffsets(List.of(partition(task))).get(partition(task)));
            case "offset_at":
                return Optional.ofNullable(
                                consumer.offsetsForTimes(Map.of(partition(task), task.get("timestamp").asLong()))
                                        .get(partition(task)))
                        .map(found -> found.offset())
                        .orElse(null);
            default:
                try (Admin admin = Admin.create(Map.of("bootstrap.servers", task.get("bootstrap").asText()))) {
                    return administer(admin, task);
                }
        }
    }

    private Object administer(Admin admin, JsonNode task) throws Exception {
        String name = task.path("topic").asText();
        switch (task.get("do").asText()) {
            case "topics":
                return admin.describeTopics(admin.listTopics().names().get()).allTopicNames().get().values().stream()
                        .collect(Collectors.toMap(TopicDescription::name, topic -> topic.partitions().size()));
            case "create_topic":
                Map<String, String> config = JSON.convertValue(task.get("config"), new TypeReference<>() {});
                NewTopic wanted = new NewTopic(name, task.get("partitions").asInt(), (short) 1).configs(config);
                return admin.createTopics(List.of(wanted)).all().get();
            case "delete_topic":
                return admin.deleteTopics(List.of(name)).all().get();
            case "add_partitions":
                NewPartitions total = NewPartitions.increaseTo(task.get("total").asInt());
                return admin.createPartitions(Map.of(name, total)).all().get();
            case "config":
                ConfigResource resource = new ConfigResource(ConfigResource.Type.TOPIC, name);
                return admin.describeConfigs(List.of(resource)).all().get().get(resource).entries().stream()
                        .collect(Collectors.toMap(ConfigEntry::name, ConfigEntry::value));
            default:
                throw new IllegalArgumentException(task.get("do").asText());
        }
    }

    private List<Long> send(JsonNode task) throws Exception {
        Map<String, Object> settings = new HashMap<>();
        settings.put("bootstrap.servers", task.get("bootstrap").asText());
        settings.put("compression.type", task.get("codec").asText());
        settings.put("acks", task.get("acks").asText());
        settings.put("enable.idempotence", task.get("idempotent").asBoolean());
        settings.put("max.request.size", task.get("request_bytes").asInt());
        settings.put("max.block.ms", UNKNOWN_TOPIC_PATIENCE_MS);
        if (task.hasNonNull("batch_bytes")) {
            settings.put("batch.size", task.get("batch_bytes").asInt());
        }
        Integer partition = task.hasNonNull("partition") ? task.get("partition").asInt() : null;
        ByteArraySerializer bytes = new ByteArraySerializer();
        List<Long> offsets = new ArrayList<>();
        try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(settings, bytes, bytes)) {
            List<Future<RecordMetadata>> sent = new ArrayList<>();
            for (JsonNode row : task.get("rows")) {
                List<Header> headers = new ArrayList<>();
                for (JsonNode header : row.get("headers")) {
                    headers.add(new RecordHeader(header.get("key").asText(), header.get("value").binaryValue()));
                }
                sent.add(producer.send(new ProducerRecord<>(
                        task.get("topic").asText(),
                        partition,
                        row.get("timestamp").asLong(),
                        row.get("key").binaryValue(),
                        row.get("value").binaryValue(),
                        headers)));
            }
            for (Future<RecordMetadata> future : sent) {
                offsets.add(future.get().offset());
            }
        }
        return offsets;
    }

    private boolean open(JsonNode task) {
        Map<String, Object> settings = new HashMap<>();
        settings.put("bootstrap.servers", task.get("bootstrap").asText());
        settings.put("auto.offset.reset", "earliest");
        settings.put("check.crcs", true);
        ByteArrayDeserializer bytes = new ByteArrayDeserializer();
        topic = task.get("topic").asText();
        polled.clear();
        consumer = new KafkaConsumer<>(settings, bytes, bytes);
        return true;
    }

    private boolean assign(JsonNode starts) {
        Map<TopicPartition, Long> wanted = new HashMap<>();
        starts.fields().forEachRemaining(start -> wanted.put(
                new TopicPartition(topic, Integer.parseInt(start.getKey())), start.getValue().asLong()));
        consumer.assign(wanted.keySet());
        wanted.forEach((partition, start) -> {
            if (start == -2) {
                consumer.seekToBeginning(List.of(partition));
            } else if (start == -1) {
                consumer.seekToEnd(List.of(partition));
                consumer.position(partition);
            } else {
                consumer.seek(partition, start);
            }
        });
        return true;
    }

    private List<Map<String, Object>> take(int count, Duration patience) {
        long deadline = System.nanoTime() + patience.toNanos();
        while (polled.size() < count && System.nanoTime() < deadline) {
            consumer.poll(Duration.ofNanos(Math.max(0, deadline - System.nanoTime()))).forEach(polled::add);
        }
        if (polled.size() < count) {
            throw new IllegalStateException("nothing comes");
        }
        List<ConsumerRecord<byte[], byte[]>> first = polled.subList(0, count);
        List<Map<String, Object>> rows = first.stream().map(Client::row).collect(Collectors.toList());
        first.clear();
        return rows;
    }

    private static Map<String, Object> row(ConsumerRecord<byte[], byte[]> record) {
        List<Map<String, Object>> headers = new ArrayList<>();
        for (Header header : record.headers()) {
            Map<String, Object> shown = new HashMap<>();
            shown.put("key", header.key());
            shown.put("value", header.value());
            headers.add(shown);
        }
        Map<String, Object> row = new HashMap<>();
        row.put("partition", record.partition());
        row.put("offset", record.offset());
        row.put("timestamp", record.timestamp());
        row.put("key", record.key());
        row.put("value", record.value());
        row.put("headers", headers);
        return row;
    }

    private TopicPartition partition(JsonNode task) {
        return new TopicPartition(topic, task.get("partition").asInt());
    }
}
