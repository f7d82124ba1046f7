import java.nio.charset.StandardCharsets;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.Windowed;

/** Functions of texts that topologies are made of, the same as in texts.py; and results as text. */
final class Texts {
    static final Consumed<String, String> CONSUMED = Consumed.with(Serdes.String(), Serdes.String());
    private static final int LENGTH_MAX = 24;

    private Texts() { }

    /** Writes a stream to a topic, keys and values as text. */
    static <K, V> void write(KStream<K, V> stream, String topic) {
        stream.to(topic, Produced.with(shown(), shown()));
    }

    /** Writes the changes of a table to the topic "out", keys and values as text. */
    static <K, V> void write(KTable<K, V> table) {
        write(table.toStream(), "out");
    }

    private static <T> Serde<T> shown() {
        return Serdes.serdeFrom(
            (topic, given) -> given == null ? null : show(given).getBytes(StandardCharsets.UTF_8),
            (topic, data) -> {
                throw new UnsupportedOperationException("what is written is not read");
            });
    }

    private static String show(Object given) {
        if (given instanceof Windowed<?> windowed) {
            return windowed.key() + "@" + windowed.window().start() + "/" + windowed.window().end();
        }
        return given.toString();
    }

    /** What there is so far, and one thing more behind it; of it the end. */
    static String chain(String soFar, String value) {
        return tail(soFar + "," + value);
    }

    /** The aggregates of two sessions, one behind the other. */
    static String merge(String one, String other) {
        return tail(one + "|" + other);
    }

    static String tail(String text) {
        return text.substring(Math.max(0, text.length() - LENGTH_MAX));
    }

    /** A pair of which either may be missing. */
    static String pair(String left, String right) {
        return (left == null ? "-" : left) + "+" + (right == null ? "-" : right);
    }

    /** The number that a value is; 1 for none. */
    static int number(String value) {
        return value == null ? 1 : Integer.parseInt(value);
    }

    /** One of three keys, chosen by the value. */
    static String group(String value) {
        return "g" + Integer.parseInt(value) % 3;
    }

    /** The key of another table that a value refers to, or null for none. */
    static String reference(String value) {
        if (value == null) {
            return null;
        }
        int number = Integer.parseInt(value) % 8;
        return number == 7 ? null : String.valueOf((char) ('a' + number));
    }
}
