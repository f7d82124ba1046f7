import java.io.*;
import java.nio.ByteBuffer;
import java.util.HexFormat;
import org.apache.kafka.common.protocol.*;

/** Reads lines of "class version hex", and answers each with the bytes left over and what Kafka writes. */
public class Echo {
    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line; (line = in.readLine()) != null; ) {
            String[] parts = line.split(" ", -1);
            short version = Short.parseShort(parts[1]);
            try {
                Message message = (Message) Class.forName(parts[0]).getConstructor().newInstance();
                ByteBuffer bytes = ByteBuffer.wrap(HexFormat.of().parseHex(parts[2]));
                message.read(new ByteBufferAccessor(bytes), version);
                ObjectSerializationCache cache = new ObjectSerializationCache();
                int size = message.size(cache, version);
                ByteBuffer out = ByteBuffer.allocate(size);
                message.write(new ByteBufferAccessor(out), cache, version);
                System.out.println(bytes.remaining() + " " + HexFormat.of().formatHex(out.array()));
            } catch (Throwable error) {
                System.out.println("! " + error.toString().replace('\n', ' '));
            }
        }
    }
}
