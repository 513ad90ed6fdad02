import com.fasterxml.jackson.databind.JsonNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import java.util.List;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.common.protocol.Readable;

/**
 * Reads lines "name version hex", and answers with what Kafka's class makes of the bytes: "hex json" when encoded again
 * and shown, "-" when it has no such version, or "! reason".
 */
public class Oracle {
    private static final HexFormat HEX = HexFormat.of();
    private static final List<String> FORMS = List.of(
        "org.apache.kafka.common.message.%sData",
        "org.apache.kafka.common.message.%s",
        "org.apache.kafka.coordinator.group.generated.%s",
        "org.apache.kafka.coordinator.transaction.generated.%s");

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            out.println(answer(line.split(" ", -1)));
            out.flush();
        }
    }

    private static String answer(String[] words) {
        short version = Short.parseShort(words[1]);
        try {
            Class<?> kind = find(words[0]);
            Message message = kind == null ? null : (Message) kind.getConstructor().newInstance();
            if (message == null || version < message.lowestSupportedVersion() || version > message.highestSupportedVersion())
                return "-";
            ByteBufferAccessor bytes = new ByteBufferAccessor(ByteBuffer.wrap(HEX.parseHex(words[2])));
            message.read(bytes, version);
            if (bytes.remaining() > 0)
                return "! " + bytes.remaining() + " bytes left over";
            return HEX.formatHex(encode(message, version)) + " " + show(kind, message, version);
        } catch (InvocationTargetException e) {
            return "! " + e.getCause();
        } catch (Exception e) {
            return "! " + e;
        }
    }

    private static Class<?> find(String name) {
        for (String form : FORMS) {
            try {
                return Class.forName(String.format(form, name));
            } catch (ClassNotFoundException e) {
                continue;
            }
        }
        return null;
    }

    private static byte[] encode(Message message, short version) {
        ObjectSerializationCache cache = new ObjectSerializationCache();
        ByteBuffer buffer = ByteBuffer.allocate(message.size(cache, version));
        message.write(new ByteBufferAccessor(buffer), cache, version);
        return buffer.array();
    }

    private static JsonNode show(Class<?> kind, Message message, short version) throws Exception {
        Method write = Class.forName(kind.getName() + "JsonConverter").getMethod("write", kind, short.class);
        return (JsonNode) write.invoke(null, message, version);
    }
}
