import Core
import Foundation
import RootSets
import RootgateClient
import Synchronization
import TLS
import Transport
import Wire

/// Gets a snapshot of everything from another service of the cluster.
struct SnapshotDownload {
    let peers: ClusterSettings.Peers
    /// More bytes would not fit into the storage.
    let bytesMax: UInt64
    let log: Log

    /// Writes the snapshot of the first service that gives one to a file, and returns its address. It waits, so it is
    /// for the thread of a start.
    ///
    /// Throws why none of them has given one.
    func get(from addresses: [Endpoint], to file: CInt) throws(ServiceError) -> Endpoint {
        var failures: [String] = []
        for address in addresses {
            do throws(ServiceError) {
                try get(from: address, to: file)
                return address
            } catch {
                failures.append("\(address): \(error.reason)")
                log(.warning, "\(address) gives no snapshot: \(error.reason)")
            }
        }
        let reasons = failures.isEmpty ? "none of them has a --cluster-address" : failures.joined(separator: "; ")
        throw ServiceError(.storageFailed, "no other service of the cluster gives a snapshot: \(reasons)")
    }

    private func get(from address: Endpoint, to file: CInt) throws(ServiceError) {
        let configuration = RootgateClient.Configuration(
            requestTimeout: .seconds(Limits.snapshotSeconds), tls: peers.tls)
        let client = try RootgateClient(address, configuration: configuration)
        defer { client.close() }
        let copy = self
        // A start has a thread of its own, and waits for what asks the other service.
        let outcome = Lock<Result<Void, ServiceError>?>(nil)
        let done = DispatchSemaphore(value: 0)
        Task.detached {
            let result: Result<Void, ServiceError>
            do throws(ServiceError) {
                result = .success(try await copy.copy(from: address, by: client, to: file))
            } catch {
                result = .failure(error)
            }
            outcome.withLock { $0 = result }
            done.signal()
        }
        done.wait()
        guard let result = outcome.withLock({ $0 }) else { throw ServiceError(.internalFault, "a download has no end") }
        try result.get()
    }

    private func copy(
        from address: Endpoint, by client: RootgateClient, to file: CInt
    ) async throws(ServiceError) {
        guard let issuer = try await client.hello().limits[HelloAnswer.Limit.issuer.rawValue] else {
            throw ServiceError(.malformedAnswer, "the service tells no number")
        }
        guard let token = peers.token(for: issuer, at: address) else {
            throw ServiceError(.internalFault, "a service gets no snapshot without the cluster's secret")
        }
        attempts: for attempt in 1...Limits.snapshotAttemptsMax {
            guard ftruncate(file, 0) == 0 else { throw SnapshotDownload.failure("emptying the snapshot's file") }
            var (identifier, offset, size): (UInt64, UInt64, UInt64) = (0, 0, 1)
            while offset < size {
                let piece: SnapshotPiece
                do throws(ServiceError) {
                    piece = try await client.readSnapshot(
                        SnapshotRequest(token: token, identifier: identifier, offset: offset))
                } catch {
                    // The snapshot is no longer there. The one that was not made would not be made at once, either.
                    if error.code == .busy, identifier != 0, attempt < Limits.snapshotAttemptsMax { continue attempts }
                    throw error
                }
                let isSame = identifier == 0 || piece.identifier == identifier && piece.size == size
                // Every piece but the last one is whole, so nobody can make this take for ever.
                let rest = piece.size - min(piece.size, offset)
                let isWhole = UInt64(piece.bytes.count) == min(UInt64(Limits.snapshotPieceBytes), rest)
                guard isSame, !piece.bytes.isEmpty, isWhole else {
                    throw ServiceError(.malformedAnswer, "the pieces of the snapshot do not fit")
                }
                guard piece.size <= bytesMax else {
                    throw ServiceError(
                        .storageFull,
                        "its snapshot has \(piece.size) bytes, and this storage may have \(bytesMax): "
                            + "raise --storage-max"
                    )
                }
                (identifier, size) = (piece.identifier, piece.size)
                try SnapshotDownload.write(piece.bytes, to: file, at: offset)
                offset += UInt64(piece.bytes.count)
            }
            return
        }
    }

    private static func write(_ bytes: [UInt8], to file: CInt, at offset: UInt64) throws(ServiceError) {
        var rest = bytes[...]
        var place = off_t(offset)
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { pwrite(file, $0.baseAddress, $0.count, place) }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { throw failure("writing the snapshot") }
            rest = rest.dropFirst(count)
            place += off_t(count)
        }
    }

    private static func failure(_ action: String) -> ServiceError {
        ServiceError(
            errno == ENOSPC ? .storageFull : .storageFailed, detail: UInt32(bitPattern: errno),
            "\(action): \(String(cString: strerror(errno)))")
    }
}
