import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.util.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.*;
import org.apache.kafka.clients.consumer.internals.ConsumerProtocol;
import org.apache.kafka.common.*;

/**
 * Apache Kafka's assignors behind a pipe. A line in: assignor|topic:racks+racks,racks;topic:...|member=instance=hex;...
 * with what each member handed in as hexadecimal bytes. A line out: member=hex=hex;... with each member's assignment,
 * and its subscription read and written again; an empty line when the assignor failed.
 */
public class Assign {
    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line; (line = in.readLine()) != null; ) {
            String answer;
            try {
                answer = answer(line.split("\\|", -1));
            } catch (RuntimeException e) {
                answer = "";
            }
            System.out.println(answer);
        }
    }

    static String answer(String[] parts) {
        ConsumerPartitionAssignor assignor = switch (parts[0]) {
            case "range" -> new RangeAssignor();
            case "roundrobin" -> new RoundRobinAssignor();
            case "sticky" -> new StickyAssignor();
            default -> new CooperativeStickyAssignor();
        };
        Map<String, Subscription> members = new HashMap<>();
        for (String each : parts[2].split(";")) {
            String[] fields = each.split("=", -1);
            Subscription read = ConsumerProtocol.deserializeSubscription(bytes(fields[2]));
            if (!fields[1].isEmpty())
                read.setGroupInstanceId(Optional.of(fields[1]));
            members.put(fields[0], read);
        }
        Map<String, Assignment> assigned =
            assignor.assign(cluster(parts[1]), new GroupSubscription(members)).groupAssignment();
        StringJoiner out = new StringJoiner(";");
        for (String member : new TreeSet<>(assigned.keySet())) {
            Subscription mine = members.get(member);
            if (mine.userData() != null)
                mine.userData().rewind();
            out.add(member + "=" + hex(ConsumerProtocol.serializeAssignment(assigned.get(member)))
                + "=" + hex(ConsumerProtocol.serializeSubscription(mine)));
        }
        return out.toString();
    }

    static Cluster cluster(String text) {
        Map<String, Node> nodes = new HashMap<>();
        List<PartitionInfo> infos = new ArrayList<>();
        for (String topic : text.split(";")) {
            if (topic.isEmpty())
                continue;
            String[] fields = topic.split(":", -1);
            String[] partitions = fields[1].split(",", -1);
            for (int number = 0; number < partitions.length; number++) {
                List<Node> replicas = new ArrayList<>();
                for (String rack : partitions[number].split("\\+")) {
                    nodes.computeIfAbsent(rack, r ->
                        r.isEmpty() ? new Node(0, "h", 1) : new Node(nodes.size() + 1, "h", 1, r));
                    replicas.add(nodes.get(rack));
                }
                Node[] all = replicas.toArray(new Node[0]);
                infos.add(new PartitionInfo(fields[0], number, all[0], all, all));
            }
        }
        return new Cluster("c", nodes.values(), infos, Set.of(), Set.of());
    }

    static ByteBuffer bytes(String hex) {
        return ByteBuffer.wrap(HexFormat.of().parseHex(hex));
    }

    static String hex(ByteBuffer buffer) {
        byte[] bytes = new byte[buffer.remaining()];
        buffer.get(bytes);
        return HexFormat.of().formatHex(bytes);
    }
}
