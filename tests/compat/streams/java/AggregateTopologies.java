import java.time.Duration;
import java.util.*;
import java.util.function.Consumer;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.*;

/** Aggregates of streams without windows, and of several streams together. */
final class AggregateTopologies {
    static final Map<String, Consumer<StreamsBuilder>> ALL = new HashMap<>();

    static {
        ALL.put("count", builder -> Texts.write(grouped(builder, "in").count()));
        ALL.put("reduce", builder -> Texts.write(grouped(builder, "in").reduce(Texts::chain)));
        ALL.put("aggregate", builder -> Texts.write(
            grouped(builder, "in").aggregate(() -> "", (key, value, soFar) -> Texts.chain(soFar, key + value))));
        ALL.put("aggregate_that_deletes", builder -> Texts.write(grouped(builder, "in").aggregate(() -> "",
            (key, value, soFar) -> Texts.number(value) % 5 == 0 ? null : Texts.chain(soFar, value))));
        ALL.put("group_by_and_count", builder -> Texts.write(
            builder.stream("in", Texts.CONSUMED).groupBy((key, value) -> value == null ? null : Texts.group(value)).count()));
        ALL.put("group_by_and_reduce", builder -> Texts.write(
            builder.stream("in", Texts.CONSUMED).groupBy((key, value) -> value == null ? null : Texts.group(value))
                .reduce(Texts::chain)));
        ALL.put("count_of_a_count", builder -> Texts.write(
            grouped(builder, "in").count().toStream().mapValues(count -> "n" + count)
                .groupBy((key, value) -> value, Grouped.as("counts")).count()));
        ALL.put("cogroup", builder -> Texts.write(cogrouped(builder).aggregate(() -> "")));
        ALL.put("cogroup_tumbling", builder -> Texts.write(cogrouped(builder)
            .windowedBy(TimeWindows.ofSizeAndGrace(Duration.ofMillis(20), Duration.ofMillis(400))).aggregate(() -> "")));
        ALL.put("cogroup_sliding", builder -> Texts.write(cogrouped(builder)
            .windowedBy(SlidingWindows.ofTimeDifferenceAndGrace(Duration.ofMillis(20), Duration.ofMillis(400)))
            .aggregate(() -> "")));
        ALL.put("cogroup_session", builder -> Texts.write(cogrouped(builder)
            .windowedBy(SessionWindows.ofInactivityGapAndGrace(Duration.ofMillis(10), Duration.ofMillis(400)))
            .aggregate(() -> "", (key, one, other) -> Texts.merge(one, other))));
    }

    private AggregateTopologies() { }

    static KGroupedStream<String, String> grouped(StreamsBuilder builder, String topic) {
        return builder.stream(topic, Texts.CONSUMED).groupByKey();
    }

    private static CogroupedKStream<String, String> cogrouped(StreamsBuilder builder) {
        return grouped(builder, "one").<String>cogroup((key, value, soFar) -> Texts.chain(soFar, "1:" + value))
            .cogroup(grouped(builder, "two"), (key, value, soFar) -> Texts.chain(soFar, "2:" + value));
    }
}
