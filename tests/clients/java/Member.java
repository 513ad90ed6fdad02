// A group member with Kafka's own client; see tests/clients/groups/members/reports.py.

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.CommitFailedException;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.consumer.RangeAssignor;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.UnknownMemberIdException;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

public class Member implements ConsumerRebalanceListener {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final Duration POLL = Duration.ofMillis(100);
    private static final Map<String, Class<?>> STRATEGIES =
            Map.of("eager", RangeAssignor.class, "cooperative", CooperativeStickyAssignor.class);

    private static PrintStream out;

    private final KafkaConsumer<byte[], byte[]> consumer;
    private final long workMs;
    private final long handoverMs;

    public static void main(String[] args) throws Exception {
        out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        System.setOut(System.err); // for the log
        AtomicBoolean leave = new AtomicBoolean();
        Thread waiting = new Thread(() -> {
            try {
                System.in.read();
            } catch (Exception closed) {
                // a closed input also means to leave
            }
            leave.set(true);
        });
        waiting.setDaemon(true);
        waiting.start();
        new Member(JSON.readTree(args[0])).run(leave);
    }

    private Member(JsonNode how) {
        workMs = how.get("work_ms").asLong();
        handoverMs = how.get("handover_ms").asLong();
        Map<String, Object> settings = new HashMap<>();
        settings.put("bootstrap.servers", how.get("bootstrap").asText());
        settings.put("group.id", how.get("group").asText());
        settings.put("enable.auto.commit", false);
        settings.put("auto.offset.reset", "earliest");
        settings.put("metadata.max.age.ms", 1_000);
        settings.put("reconnect.backoff.max.ms", 500);
        settings.put("fetch.max.wait.ms", 100);
        if (how.hasNonNull("instance")) {
            settings.put("group.instance.id", how.get("instance").asText());
        }
        String protocol = how.get("protocol").asText();
        if (protocol.equals("consumer")) {
            settings.put("group.protocol", "consumer");
        } else {
            settings.put("partition.assignment.strategy", List.of(STRATEGIES.get(protocol)));
            settings.put("session.timeout.ms", how.get("session_timeout_ms").asInt());
            settings.put("heartbeat.interval.ms", how.get("heartbeat_interval_ms").asInt());
        }
        ByteArrayDeserializer bytes = new ByteArrayDeserializer();
        consumer = new KafkaConsumer<>(settings, bytes, bytes);
        List<String> topics = new ArrayList<>();
        how.get("topics").forEach(topic -> topics.add(topic.asText()));
        consumer.subscribe(topics, this);
    }

    private void run(AtomicBoolean leave) {
        while (!leave.get()) {
            ConsumerRecords<byte[], byte[]> records = poll();
            if (!records.isEmpty()) {
                Map<TopicPartition, OffsetAndMetadata> next = process(records);
                sleep(workMs);
                commit(next);
            }
        }
        tell("leaving", Map.of());
        consumer.close();
        tell("left", Map.of());
    }

    // If the process was frozen during a request for offsets, 4.3.1 throws the group's refusal: the member is fenced.
    // With the next poll it joins again.
    private ConsumerRecords<byte[], byte[]> poll() {
        try {
            return consumer.poll(POLL);
        } catch (UnknownMemberIdException shutOut) {
            tell("failed", Map.of("why", shutOut.toString(), "code", Errors.UNKNOWN_MEMBER_ID.code()));
            return ConsumerRecords.empty();
        }
    }

    private Map<TopicPartition, OffsetAndMetadata> process(ConsumerRecords<byte[], byte[]> records) {
        Map<String, List<Long>> offsets = new LinkedHashMap<>();
        Map<TopicPartition, OffsetAndMetadata> next = new HashMap<>();
        for (ConsumerRecord<byte[], byte[]> record : records) {
            TopicPartition partition = new TopicPartition(record.topic(), record.partition());
            offsets.computeIfAbsent(place(partition), __ -> new ArrayList<>()).add(record.offset());
            next.put(partition, new OffsetAndMetadata(record.offset() + 1));
        }
        tell("processed", Map.of("offsets", offsets));
        return next;
    }

    private void commit(Map<TopicPartition, OffsetAndMetadata> next) {
        Map<String, Object> what = new HashMap<>();
        what.put("since", now());
        what.put("offsets", next.entrySet().stream()
                .collect(Collectors.toMap(entry -> place(entry.getKey()), entry -> entry.getValue().offset())));
        try {
            consumer.commitSync(next);
            tell("committed", what);
        } catch (KafkaException failure) {
            Throwable cause = failure instanceof CommitFailedException && failure.getCause() != null
                    ? failure.getCause()
                    : failure;
            what.put("code", Errors.forException(cause).code());
            what.put("why", failure.toString());
            tell("refused", what);
        }
    }

    @Override
    public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
        tell("assigned", Map.of("partitions", places(partitions), "member", consumer.groupMetadata().memberId()));
    }

    @Override
    public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
        sleep(handoverMs);
        tell("revoked", Map.of("partitions", places(partitions)));
    }

    @Override
    public void onPartitionsLost(Collection<TopicPartition> partitions) {
        tell("lost", Map.of("partitions", places(partitions)));
    }

    private static void tell(String event, Map<String, Object> of) {
        try {
            Map<String, Object> line = new LinkedHashMap<>(of);
            line.put("at", now());
            line.put("told", event);
            out.println(JSON.writeValueAsString(line));
        } catch (Exception failure) {
            throw new IllegalStateException(failure);
        }
    }

    private static void sleep(long ms) {
        try {
            Thread.sleep(ms);
        } catch (InterruptedException interruption) {
            throw new IllegalStateException(interruption);
        }
    }

    private static double now() {
        Instant now = Instant.now();
        return now.getEpochSecond() + now.getNano() / 1e9;
    }

    private static String place(TopicPartition partition) {
        return partition.topic() + ":" + partition.partition();
    }

    private static List<String> places(Collection<TopicPartition> partitions) {
        return partitions.stream().map(Member::place).collect(Collectors.toList());
    }
}
