import Core
import Foundation
import Platform

/// What a service may come to take of memory and of addresses, by its options. The program ends when it gets no memory
/// for something small, so a service does not start where the system allows it less than this.
struct MemoryNeed: Equatable {
    /// Bytes of addresses for the data file. It is mapped as large as it may become.
    var map: Int
    /// Bytes of memory for everything that has a limit, and for the program.
    var memory: Int
    /// Bytes of addresses for the stacks of threads.
    var stacks: Int

    /// Bytes of addresses in all, when the allocator has few heaps. At a start the file is mapped twice: its pages are
    /// checked while LMDB reads some of it.
    var addresses: Int {
        2 * map + memory + stacks + Limits.programAddressBytes + Limits.heapsWithLimitMax * Limits.heapAddressBytes
    }

    /// Bytes of memory that is the process's alone.
    var privateMemory: Int { memory + stacks }

    /// `fileBytes`: the size of the data file that is there.
    init(_ configuration: Configuration, fileBytes: Int) {
        map = max(configuration.storageBytesMax, fileBytes) + configuration.storageReserveBytes
        // Directories of the buckets, of two versions at times, and which buckets were checked.
        let ofStorage = map / 16 + min(map / 64, 128 << 20)
        let ofWorkers = configuration.workers * (Limits.receiveBufferBytes + Limits.frameBodyBytesMax)
        // The operator's pages have one server for this machine and one for others.
        let pages = (configuration.servesAssociation ? 1 : 0) + (configuration.servesOperator ? 2 : 0)
        let ofVisitors = pages * Limits.visitorsBytesMax
        memory =
            max(configuration.requestBytesMax, Limits.requestMemoryBytesMin) + ofStorage + ofWorkers + ofVisitors
            + 2 * Limits.mutationBytesPerCommitMax + min(map, Limits.commitPageBytesMax)
            + configuration.replayBytesMax
            + configuration.noncesMax * Limits.nonceBytes + configuration.knownKeyBytesMax
            + configuration.sampledProofs * Limits.sampledProofBytesMax + Limits.programBytes
        let threads = max(1, configuration.workers) + Limits.threadsBesideWorkersMax
        let stack = max(Limits.stackBytesMax, System.limit(of: .stack) ?? 0)
        stacks = threads * min(stack, Limits.stackBytesMax << 10)
    }

    /// Throws when the system allows this process less. With a limit of addresses, the allocator gets few heaps.
    static func check(_ configuration: Configuration) throws(StartupFailure) {
        var status = stat()
        let isThere = stat(configuration.dataDirectory + "/data.mdb", &status) == 0
        let need = MemoryNeed(configuration, fileBytes: isThere ? Int(status.st_size) : 0)
        if let limit = System.limit(of: .addresses) {
            guard limit >= need.addresses else { throw .outOfResources(need.lack(of: limit)) }
            System.limitHeaps(to: Limits.heapsWithLimitMax)
        }
        if let limit = System.limit(of: .privateMemory), limit < need.privateMemory {
            throw .outOfResources(
                "it may have \(limit >> 20) MiB of memory (ulimit -d), and with its options it may need "
                    + "\(mebibytes(need.privateMemory)): \(MemoryNeed.advice)")
        }
    }

    /// Rounded up: as much is enough.
    private static func mebibytes(_ bytes: Int) -> Int { (bytes + (1 << 20) - 1) >> 20 }

    private static let advice =
        "raise the limit, or lower --request-memory, --known-keys, --replay-memory, --nonces-max or --storage-max"

    private func lack(of limit: Int) -> String {
        "it may have \(limit >> 20) MiB of addresses (ulimit -v), and with its options it may need "
            + "\(MemoryNeed.mebibytes(addresses)), \(2 * map >> 20) of them for the data file: \(MemoryNeed.advice)"
    }
}
