import java.util.HashMap;
import java.util.Map;
import java.util.function.Consumer;
import org.apache.kafka.streams.StreamsBuilder;

/** All topologies by their names, which are those of the Python side. */
final class Topologies {
    private static final Map<String, Consumer<StreamsBuilder>> ALL = new HashMap<>();

    static {
        ALL.putAll(StatelessTopologies.ALL);
        ALL.putAll(AggregateTopologies.ALL);
        ALL.putAll(WindowTopologies.ALL);
        ALL.putAll(StreamJoinTopologies.ALL);
        ALL.putAll(TableTopologies.ALL);
        ALL.putAll(ProcessorTopologies.ALL);
    }

    private Topologies() { }

    static Consumer<StreamsBuilder> named(String name) {
        Consumer<StreamsBuilder> found = ALL.get(name);
        if (found == null) {
            throw new IllegalArgumentException("there is no topology " + name);
        }
        return found;
    }
}
