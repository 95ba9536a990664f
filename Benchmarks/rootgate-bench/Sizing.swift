import Foundation

/// What many proofs and root hashes need, computed from the figures of a report.
enum Sizing {
    static let title = "Sizing"

    private static let proofsPerSecond = 1e7
    private static let roots = 1e9
    /// The machine that is assumed for each service: processors, and bytes of memory of which most are for root hashes.
    private static let cores = 32.0
    private static let memory = 128e9
    private static let memoryShare = 0.8

    /// The section; `nil` when one of its figures is missing.
    static func section(from document: ResultsDocument) -> String? {
        guard let machineCores = document.fact("cores").flatMap(Double.init),
            let known = figure("proof.known.loopback", document), let new = figure("proof.new.loopback", document),
            let rootBytes = figure("roots.bytes", document), let changes = figure("cluster.mutations", document),
            let changeBytes = figure("cluster.traffic", document), let joining = figure("cluster.join", document),
            let removal = document.row("cluster.removal"), let share = figure("cluster.proofs", document, "ratio")
        else { return nil }
        let perCore = (known: known / machineCores / share, new: new / machineCores / share)
        let bytes = rootBytes * roots
        func row(partitions: Double) -> [String] {
            let memoryEach = bytes / partitions
            let proofs = proofsPerSecond / partitions
            // One service more than it takes, so that one may end.
            let gates = (
                known: (proofs / perCore.known / cores).rounded(.up) + 1,
                new: (proofs / perCore.new / cores).rounded(.up) + 1
            )
            return [
                grouped(Int(partitions)), rounded(roots / partitions), gigabytes(memoryEach),
                memoryEach <= memory * memoryShare ? "yes" : "no",
                "\(Int(gates.known)), together \(Int(gates.known * partitions))",
                "\(Int(gates.new)), together \(Int(gates.new * partitions))",
                rounded(changes * partitions), rounded(joining * roots / 1e7 / partitions),
            ]
        }
        let traffic = changes * changeBytes
        return """
            What \(rounded(proofsPerSecond)) proofs a second and \(rounded(roots)) root hashes need, computed from the \
            figures above. They were measured with 10 million root hashes at most, and on \(Int(machineCores)) cores \
            that the load generator and etcd share, so this is an estimate. Each service is assumed to have \
            \(Int(cores)) such cores and \(gigabytes(memory)) of memory, of which \(Int(memoryShare * 100)) % are for \
            root hashes. The services of a cluster have everything each; one more than it takes is counted, so that \
            one may end.

            A core verifies \(rounded(perCore.known)) proofs a second by known keys, and \(rounded(perCore.new)) by \
            new ones. A root hash takes \(rounded(rootBytes)) bytes in the file, change log included, and look-ups are \
            quick while the file is in memory. A removal is effective everywhere after \(removal["value"] ?? "") ms \
            (\(removal["conditions"] ?? "")).

            A durable change of one root hash takes \(rounded(changeBytes)) bytes of traffic of three members of etcd \
            with three services; at \(rounded(changes)) changes a second, which is the most that one cluster took \
            here, \(rounded(traffic / 1e6)) MB/s. etcd keeps 32 to 64 MiB of log, whatever the number of root hashes.

            More root hashes than one machine's memory, or more changes than one cluster takes, need partitions: \
            clusters that share nothing. All that is stored belongs to a collaboration, except principals and \
            accounts. So whoever sends a request chooses the partition by the collaboration's slot, as \
            \u{201c}\(partitionsTitle)\u{201d} describes and simulates.

            \(ResultsDocument.markdown([header] + [1, 2, 4, 8, 16].map { row(partitions: $0) }))
            """
    }

    static let partitionsTitle = "Partitions by collaboration"

    private static let header = [
        "partitions", "root hashes each", "disk and memory of a service", "fits", "services each, known keys",
        "services each, new keys", "changes/s together", "seconds until a service has joined",
    ]

    private static func figure(_ name: String, _ document: ResultsDocument, _ column: String = "value") -> Double? {
        document.row(name)?[column].flatMap { Double($0.replacing(",", with: "")) }
    }

    private static func gigabytes(_ bytes: Double) -> String { "\(rounded(bytes / 1e9)) GB" }
}
