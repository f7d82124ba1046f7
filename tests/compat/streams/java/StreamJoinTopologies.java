import java.time.Duration;
import java.util.*;
import java.util.function.Consumer;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.*;

/** Streams joined with streams, with tables, and with global tables. */
final class StreamJoinTopologies {
    static final Map<String, Consumer<StreamsBuilder>> ALL = new HashMap<>();

    private static final JoinWindows AT_ONCE = JoinWindows.ofTimeDifferenceWithNoGrace(ms(15));
    private static final JoinWindows WITH_GRACE = JoinWindows.ofTimeDifferenceAndGrace(ms(15), ms(20));
    private static final JoinWindows LATER = JoinWindows.ofTimeDifferenceWithNoGrace(ms(0)).before(ms(5)).after(ms(20));

    static {
        ALL.put("join_streams", builder -> left(builder).join(right(builder), Texts::pair, WITH_GRACE).to("out"));
        ALL.put("join_streams_without_grace", builder ->
            left(builder).join(right(builder), Texts::pair, AT_ONCE).to("out"));
        ALL.put("join_streams_one_after_the_other", builder ->
            left(builder).join(right(builder), Texts::pair, LATER).to("out"));
        ALL.put("left_join_streams", builder -> left(builder).leftJoin(right(builder), Texts::pair, AT_ONCE).to("out"));
        ALL.put("left_join_streams_one_after_the_other", builder ->
            left(builder).leftJoin(right(builder), Texts::pair, LATER).to("out"));
        ALL.put("left_join_streams_with_grace", builder ->
            left(builder).leftJoin(right(builder), Texts::pair, WITH_GRACE).to("out"));
        ALL.put("outer_join_streams", builder -> left(builder).outerJoin(right(builder), Texts::pair, AT_ONCE).to("out"));
        ALL.put("outer_join_streams_with_grace", builder ->
            left(builder).outerJoin(right(builder), Texts::pair, WITH_GRACE).to("out"));
        ALL.put("join_stream_with_itself", builder -> {
            KStream<String, String> both = left(builder);
            both.join(both, Texts::pair, AT_ONCE).to("out");
        });
        ALL.put("join_stream_with_table", builder -> left(builder).join(table(builder), Texts::pair).to("out"));
        ALL.put("left_join_stream_with_table", builder -> left(builder).leftJoin(table(builder), Texts::pair).to("out"));
        ALL.put("join_stream_with_a_count", builder ->
            left(builder).join(right(builder).groupByKey().count(), (value, count) -> value + "+" + count).to("out"));
        ALL.put("join_stream_with_global_table", builder -> left(builder)
            .join(global(builder), (key, value) -> Texts.reference(value), Texts::pair).to("out"));
        ALL.put("left_join_stream_with_global_table", builder -> left(builder)
            .leftJoin(global(builder), (key, value) -> Texts.reference(value), Texts::pair).to("out"));
    }

    private StreamJoinTopologies() { }

    private static Duration ms(long span) {
        return Duration.ofMillis(span);
    }

    private static KStream<String, String> left(StreamsBuilder builder) {
        return builder.stream("left", Texts.CONSUMED);
    }

    private static KStream<String, String> right(StreamsBuilder builder) {
        return builder.stream("right", Texts.CONSUMED);
    }

    private static KTable<String, String> table(StreamsBuilder builder) {
        return builder.table("right", Texts.CONSUMED);
    }

    private static GlobalKTable<String, String> global(StreamsBuilder builder) {
        return builder.globalTable("right", Texts.CONSUMED);
    }
}
