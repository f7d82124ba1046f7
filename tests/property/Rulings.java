import java.io.*;
import java.util.*;
import java.util.stream.Collectors;
import org.apache.kafka.common.DirectoryId;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.metadata.PartitionChangeRecord;
import org.apache.kafka.controller.PartitionChangeBuilder;
import org.apache.kafka.metadata.*;
import org.apache.kafka.metadata.placement.*;
import org.apache.kafka.server.common.MetadataVersion;

/** Reads cases, one a line of key=value pairs, and answers each with what Kafka's controller would rule. */
public class Rulings {
    static final Uuid TOPIC = new Uuid(1, 1);

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        PrintStream out = new PrintStream(new BufferedOutputStream(System.out));
        for (String line; (line = in.readLine()) != null; ) {
            Map<String, String> given = new HashMap<>();
            for (String pair : line.split(" ")) {
                given.put(pair.substring(0, pair.indexOf('=')), pair.substring(pair.indexOf('=') + 1));
            }
            out.println(given.containsKey("place") ? place(given) : change(given));
        }
        out.flush();
    }

    static String change(Map<String, String> given) {
        int[] replicas = ints(given.get("replicas"));
        PartitionRegistration partition = new PartitionRegistration.Builder()
            .setReplicas(replicas)
            .setDirectories(DirectoryId.migratingArray(replicas.length))
            .setIsr(ints(given.get("isr")))
            .setElr(ints(given.get("elr")))
            .setLastKnownElr(ints(given.get("last")))
            .setAddingReplicas(ints(given.get("adding")))
            .setRemovingReplicas(ints(given.get("removing")))
            .setLeader(Integer.parseInt(given.get("leader")))
            .setLeaderRecoveryState(LeaderRecoveryState.of(Byte.parseByte(given.get("recovery"))))
            .setLeaderEpoch(1).setPartitionEpoch(1).build();
        List<Integer> down = list(given.get("down"));
        PartitionChangeBuilder builder = new PartitionChangeBuilder(partition, TOPIC, 0, r -> !down.contains(r),
            MetadataVersion.fromFeatureLevel(Short.parseShort(given.get("version"))),
            Integer.parseInt(given.get("min")), given.get("eligible").equals("1"));
        builder.setDefaultDirProvider(broker -> DirectoryId.MIGRATING);
        builder.setElection(PartitionChangeBuilder.Election.valueOf(given.get("election")));
        if (given.containsKey("to_isr")) builder.setTargetIsr(list(given.get("to_isr")));
        if (given.containsKey("to_replicas")) builder.setTargetReplicas(list(given.get("to_replicas")));
        if (given.containsKey("to_adding")) builder.setTargetAdding(list(given.get("to_adding")));
        if (given.containsKey("to_removing")) builder.setTargetRemoving(list(given.get("to_removing")));
        if (given.containsKey("unclean")) builder.setUncleanShutdownReplicas(list(given.get("unclean")));
        if (given.containsKey("to_recovery"))
            builder.setTargetLeaderRecoveryState(LeaderRecoveryState.of(Byte.parseByte(given.get("to_recovery"))));
        return builder.build().map(built -> {
            PartitionChangeRecord record = (PartitionChangeRecord) built.message();
            return record.leader() + ";" + text(record.isr()) + ";" + text(record.eligibleLeaderReplicas()) + ";"
                + text(record.lastKnownElr()) + ";" + text(record.replicas()) + ";" + text(record.addingReplicas())
                + ";" + text(record.removingReplicas()) + ";" + record.leaderRecoveryState() + ";"
                + (record.directories() == null ? "-" : record.directories().size());
        }).orElse("none");
    }

    static String place(Map<String, String> given) {
        List<UsableBroker> brokers = new ArrayList<>();
        for (String each : given.get("place").split(",")) {
            String[] parts = each.split(":", -1);
            Optional<String> rack = parts[1].isEmpty() ? Optional.empty() : Optional.of(parts[1]);
            brokers.add(new UsableBroker(Integer.parseInt(parts[0]), rack, parts[2].equals("1")));
        }
        ClusterDescriber cluster = new ClusterDescriber() {
            public Iterator<UsableBroker> usableBrokers() { return brokers.iterator(); }
            public Uuid defaultDir(int broker) { return DirectoryId.MIGRATING; }
        };
        PlacementSpec spec = new PlacementSpec(0, Integer.parseInt(given.get("partitions")),
            Short.parseShort(given.get("factor")));
        try {
            return new StripedReplicaPlacer(new Random(Long.parseLong(given.get("seed")))).place(spec, cluster)
                .assignments().stream().map(each -> text(each.replicas())).collect(Collectors.joining(";"));
        } catch (Exception error) {
            return "refused";
        }
    }

    static List<Integer> list(String text) {
        List<Integer> found = new ArrayList<>();
        for (String each : text.split(",")) if (!each.isEmpty()) found.add(Integer.parseInt(each));
        return found;
    }

    static int[] ints(String text) {
        return list(text).stream().mapToInt(each -> each).toArray();
    }

    static String text(List<Integer> brokers) {
        return brokers == null ? "-" : brokers.stream().map(String::valueOf).collect(Collectors.joining(","));
    }
}
