import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.MessageFormatter;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRecord;
import org.apache.kafka.coordinator.group.GroupCoordinatorRecordSerde;
import org.apache.kafka.tools.consumer.GroupMetadataMessageFormatter;
import org.apache.kafka.tools.consumer.OffsetsMessageFormatter;

/**
 * Reads lines "key value" in hex, of records of __consumer_offsets; no value is "-". Answers with the key and value that
 * Kafka's coordinator writes for what it has read, and what the formatters of kafka-console-consumer show; or "! reason".
 */
public class Groups {
    private static final HexFormat HEX = HexFormat.of();
    private static final GroupCoordinatorRecordSerde SERDE = new GroupCoordinatorRecordSerde();

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] words = line.split(" ", -1);
            byte[] value = words[1].equals("-") ? null : HEX.parseHex(words[1]);
            out.println(answer(HEX.parseHex(words[0]), value));
            out.flush();
        }
    }

    private static String answer(byte[] key, byte[] value) {
        try {
            CoordinatorRecord record = SERDE.deserialize(ByteBuffer.wrap(key), value == null ? null : ByteBuffer.wrap(value));
            byte[] again = SERDE.serializeValue(record);
            String written = HEX.formatHex(SERDE.serializeKey(record)) + " " + (again == null ? "-" : HEX.formatHex(again));
            return written + " [" + shown(new OffsetsMessageFormatter(), key, value) + ","
                + shown(new GroupMetadataMessageFormatter(), key, value) + "]";
        } catch (Exception e) {
            return "! " + e;
        }
    }

    private static String shown(MessageFormatter formatter, byte[] key, byte[] value) {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        formatter.writeTo(new ConsumerRecord<>("__consumer_offsets", 0, 0, key, value), new PrintStream(out, false, StandardCharsets.UTF_8));
        String line = out.toString(StandardCharsets.UTF_8).trim();
        return line.isEmpty() ? "null" : line;
    }
}
