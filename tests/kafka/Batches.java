import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HexFormat;
import java.util.Iterator;
import java.util.Map;
import java.util.Optional;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.errors.CorruptRecordException;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.CompressionType;
import org.apache.kafka.common.record.internal.ControlRecordType;
import org.apache.kafka.common.record.internal.DefaultRecordBatch;
import org.apache.kafka.common.record.internal.EndTransactionMarker;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MemoryRecordsBuilder;
import org.apache.kafka.common.record.internal.MutableRecordBatch;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.utils.ByteBufferOutputStream;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.util.KafkaScheduler;
import org.apache.kafka.storage.internals.log.AppendOrigin;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.ProducerStateManagerConfig;
import org.apache.kafka.storage.internals.log.RecordValidationException;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;

/**
 * Reads lines of JSON, each a task for Kafka's record classes and what it needs, and answers with JSON, or "! reason".
 * Bytes are hex; fields are named as kgateway names them; a record is [offset, timestamp, key, value, [[key, value]]].
 */
public class Batches {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final HexFormat HEX = HexFormat.of();
    private static final KafkaScheduler SCHEDULER = new KafkaScheduler(1);
    private static final BrokerTopicStats STATS = new BrokerTopicStats();

    public static void main(String[] args) throws IOException {
        SCHEDULER.startup();
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            out.println(answer(line));
            out.flush();
        }
    }

    private static String answer(String line) {
        try {
            JsonNode asked = JSON.readTree(line);
            return JSON.writeValueAsString(switch (asked.get("task").asText()) {
                case "read" -> read(bytes(asked.get("data")));
                case "read_set" -> readSet(bytes(asked.get("data")));
                case "is_valid" -> isValid(bytes(asked.get("data")));
                case "build" -> build(asked);
                case "build_empty" -> buildEmpty(asked);
                case "build_marker" -> buildMarker(asked);
                case "append" -> append(asked);
                default -> throw new IllegalArgumentException("there is no such task");
            });
        } catch (Throwable e) { // snappy-java reports damage as an Error
            return "! " + e;
        }
    }

    /** Returns the header and the records of each batch in the data. */
    private static ArrayNode read(byte[] data) {
        MemoryRecords batches = MemoryRecords.readableRecords(ByteBuffer.wrap(data));
        if (batches.validBytes() != data.length)
            throw new IllegalArgumentException(batches.validBytes() + " of " + data.length + " bytes are batches");
        ArrayNode shown = JSON.createArrayNode();
        for (MutableRecordBatch batch : batches.batches()) {
            batch.ensureValid();
            ArrayNode pair = shown.addArray().add(header((DefaultRecordBatch) batch));
            ArrayNode records = pair.addArray();
            for (Record record : batch) {
                record.ensureValid();
                records.add(record(record));
            }
        }
        return shown;
    }

    /** Returns magic, codec, type of timestamps, offset and records of each message in a set. */
    private static ArrayNode readSet(byte[] data) {
        ArrayNode shown = JSON.createArrayNode();
        for (MutableRecordBatch message : MemoryRecords.readableRecords(ByteBuffer.wrap(data)).batches()) {
            message.ensureValid();
            ArrayNode pair = shown.addArray();
            pair.addArray().add(message.magic()).add(message.compressionType().id).add(message.timestampType().id)
                .add(message.lastOffset());
            ArrayNode records = pair.addArray();
            for (Record record : message) {
                record.ensureValid();
                records.add(record(record));
            }
        }
        return shown;
    }

    private static ObjectNode header(DefaultRecordBatch batch) {
        return JSON.createObjectNode()
            .put("base_offset", batch.baseOffset())
            .put("size", batch.sizeInBytes())
            .put("partition_leader_epoch", batch.partitionLeaderEpoch())
            .put("magic", batch.magic())
            .put("crc", batch.checksum())
            .put("codec", batch.compressionType().id)
            .put("timestamp_type", batch.timestampType().id)
            .put("is_transactional", batch.isTransactional())
            .put("is_control", batch.isControlBatch())
            .put("has_delete_horizon", batch.deleteHorizonMs().isPresent())
            .put("last_offset", batch.lastOffset())
            .put("base_timestamp", batch.baseTimestamp())
            .put("max_timestamp", batch.maxTimestamp())
            .put("producer_id", batch.producerId())
            .put("producer_epoch", batch.producerEpoch())
            .put("base_sequence", batch.baseSequence())
            .put("records_count", batch.countOrNull());
    }

    private static ArrayNode record(Record record) {
        ArrayNode shown = JSON.createArrayNode().add(record.offset()).add(record.timestamp());
        ArrayNode headers = shown.add(hex(record.key())).add(hex(record.value())).addArray();
        for (Header header : record.headers())
            headers.addArray().add(header.key()).add(header.value() == null ? null : HEX.formatHex(header.value()));
        return shown;
    }

    /** Returns whether the first batch is valid; null if the data ends before it. */
    private static Boolean isValid(byte[] data) {
        try {
            Iterator<MutableRecordBatch> batches = MemoryRecords.readableRecords(ByteBuffer.wrap(data)).batchIterator();
            return batches.hasNext() ? batches.next().isValid() : null;
        } catch (CorruptRecordException e) {
            return false;
        }
    }

    private static String build(JsonNode asked) {
        MemoryRecordsBuilder builder = new MemoryRecordsBuilder(
            new ByteBufferOutputStream(256), (byte) asked.path("magic").asInt(RecordBatch.MAGIC_VALUE_V2),
            compression(asked), timestampType(asked),
            baseOffset(asked), logAppendTime(asked), producerId(asked), producerEpoch(asked), baseSequence(asked),
            isTransactional(asked), false, leaderEpoch(asked), Integer.MAX_VALUE,
            asked.path("delete_horizon_ms").asLong(RecordBatch.NO_TIMESTAMP));
        for (JsonNode record : asked.get("records")) {
            Header[] headers = new Header[record.get(4).size()];
            for (int n = 0; n < headers.length; n++)
                headers[n] = new RecordHeader(record.get(4).get(n).get(0).asText(), bytes(record.get(4).get(n).get(1)));
            builder.appendWithOffset(
                baseOffset(asked) + record.get(0).asLong(), record.get(1).asLong(), bytes(record.get(2)),
                bytes(record.get(3)), headers);
        }
        return hex(builder.build().buffer());
    }

    /** Returns the header that compaction leaves of a batch without records. */
    private static String buildEmpty(JsonNode asked) {
        ByteBuffer buffer = ByteBuffer.allocate(DefaultRecordBatch.RECORD_BATCH_OVERHEAD);
        DefaultRecordBatch.writeEmptyHeader(
            buffer, RecordBatch.MAGIC_VALUE_V2, producerId(asked), producerEpoch(asked), baseSequence(asked),
            baseOffset(asked), baseOffset(asked), leaderEpoch(asked), timestampType(asked), logAppendTime(asked),
            isTransactional(asked), asked.path("is_control").asBoolean());
        return hex(buffer.flip());
    }

    private static String buildMarker(JsonNode asked) {
        ControlRecordType type = ControlRecordType.valueOf(asked.get("type").asText());
        return hex(MemoryRecords.withEndTransactionMarker(
            baseOffset(asked), asked.get("timestamp").asLong(), leaderEpoch(asked), producerId(asked),
            producerEpoch(asked), new EndTransactionMarker(type, asked.get("coordinator_epoch").asInt())).buffer());
    }

    /** Returns the answer of a leader, whose empty log begins at this offset, to a producer, and the log afterwards. */
    private static ArrayNode append(JsonNode asked) throws IOException {
        Path folder = Files.createTempDirectory("batches");
        UnifiedLog log = emptyLog(folder, baseOffset(asked), asked.get("timestamp_type").asText());
        try {
            MemoryRecords batches = MemoryRecords.readableRecords(ByteBuffer.wrap(bytes(asked.get("data"))));
            return JSON.createArrayNode().add(code(log, batches, leaderEpoch(asked)))
                .add(HEX.formatHex(Files.readAllBytes(log.activeSegment().log().file().toPath())));
        } finally {
            log.delete();
            Files.delete(folder);
        }
    }

    private static UnifiedLog emptyLog(Path folder, long start, String timestampType) throws IOException {
        LogConfig config = new LogConfig(Map.of(
            "message.timestamp.type", timestampType, "message.timestamp.after.max.ms", Long.toString(Long.MAX_VALUE)));
        return UnifiedLog.create(
            folder.resolve("topic-0").toFile(), config, start, start, SCHEDULER, STATS, Time.SYSTEM, 900_000,
            new ProducerStateManagerConfig(86_400_000, false), 600_000, new LogDirFailureChannel(1), true,
            Optional.empty());
    }

    private static short code(UnifiedLog log, MemoryRecords batches, int leaderEpoch) throws IOException {
        try {
            log.appendAsLeader(batches, leaderEpoch, AppendOrigin.CLIENT);
            return Errors.NONE.code();
        } catch (RecordValidationException e) {
            return Errors.forException(e.invalidException()).code();
        } catch (RuntimeException e) {
            return Errors.forException(e).code();
        }
    }

    private static Compression compression(JsonNode asked) {
        CompressionType codec = CompressionType.forId(asked.path("codec").asInt());
        if (!asked.hasNonNull("level"))
            return Compression.of(codec).build();
        int level = asked.get("level").asInt();
        return switch (codec) {
            case GZIP -> Compression.gzip().level(level).build();
            case LZ4 -> Compression.lz4().level(level).build();
            case ZSTD -> Compression.zstd().level(level).build();
            case NONE, SNAPPY -> throw new IllegalArgumentException(codec + " has no levels");
        };
    }

    private static long baseOffset(JsonNode asked) {
        return asked.path("base_offset").asLong();
    }

    private static TimestampType timestampType(JsonNode asked) {
        return asked.hasNonNull("log_append_time_ms") ? TimestampType.LOG_APPEND_TIME : TimestampType.CREATE_TIME;
    }

    private static long logAppendTime(JsonNode asked) {
        return asked.path("log_append_time_ms").asLong(RecordBatch.NO_TIMESTAMP);
    }

    private static long producerId(JsonNode asked) {
        return asked.path("producer_id").asLong(RecordBatch.NO_PRODUCER_ID);
    }

    private static short producerEpoch(JsonNode asked) {
        return (short) asked.path("producer_epoch").asInt(RecordBatch.NO_PRODUCER_EPOCH);
    }

    private static int baseSequence(JsonNode asked) {
        return asked.path("base_sequence").asInt(RecordBatch.NO_SEQUENCE);
    }

    private static int leaderEpoch(JsonNode asked) {
        return asked.path("leader_epoch").asInt(RecordBatch.NO_PARTITION_LEADER_EPOCH);
    }

    private static boolean isTransactional(JsonNode asked) {
        return asked.path("is_transactional").asBoolean();
    }

    private static byte[] bytes(JsonNode hex) {
        return hex.isNull() ? null : HEX.parseHex(hex.asText());
    }

    private static String hex(ByteBuffer buffer) {
        if (buffer == null)
            return null;
        byte[] bytes = new byte[buffer.remaining()];
        buffer.duplicate().get(bytes);
        return HEX.formatHex(bytes);
    }
}
