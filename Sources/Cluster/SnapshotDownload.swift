import Core
import Foundation
import Platform
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
    /// For how long a service is asked that is still making its snapshot.
    var makingMilliseconds = Limits.snapshotMakingMilliseconds
    let onWait: StartExtension

    /// Writes the snapshot that a service gives to a file, and returns its size. It waits, so it is for the thread of a
    /// start.
    ///
    /// Throws why the service has given none.
    func get(from address: Endpoint, to file: CInt) throws(ServiceError) -> UInt64 {
        func client(_ seconds: Int) throws(ServiceError) -> RootgateClient {
            try RootgateClient(address, configuration: .init(requestTimeout: .seconds(seconds), tls: peers.tls))
        }
        // A service that hangs, or is none, must not keep the others from being asked.
        let (quick, patient) = (try client(Limits.snapshotHelloSeconds), try client(Limits.snapshotSeconds))
        defer {
            quick.close()
            patient.close()
        }
        let copy = self
        // A start has a thread of its own, and waits for what asks the other service.
        let outcome = Lock<Result<UInt64, ServiceError>?>(nil)
        let done = DispatchSemaphore(value: 0)
        Task.detached {
            let result: Result<UInt64, ServiceError>
            do throws(ServiceError) {
                let issuer = try await quick.hello().limits[HelloAnswer.Limit.issuer.rawValue]
                quick.close()
                result = .success(try await copy.copy(from: address, issuer, by: patient, to: file))
            } catch {
                result = .failure(error)
            }
            outcome.withLock { $0 = result }
            done.signal()
        }
        done.wait()
        guard let result = outcome.withLock({ $0 }) else { throw ServiceError(.internalFault, "a download has no end") }
        return try result.get()
    }

    private func copy(
        from address: Endpoint, _ issuer: UInt64?, by client: RootgateClient, to file: CInt
    ) async throws(ServiceError) -> UInt64 {
        guard let issuer else {
            throw ServiceError(.malformedAnswer, "the service tells no number")
        }
        guard let token = peers.token(for: issuer, at: address) else {
            throw ServiceError(.internalFault, "a service gets no snapshot without the cluster's secret")
        }
        var deadline = System.millisecondsWithSleep + makingMilliseconds
        var attempt = 1
        attempts: while true {
            guard ftruncate(file, 0) == 0 else { throw SnapshotDownload.failure("emptying the snapshot's file") }
            var (identifier, offset, size): (UInt64, UInt64, UInt64) = (0, 0, 1)
            while offset < size {
                onWait(Limits.startExtensionSeconds, "getting a snapshot of \(address)")
                let piece: SnapshotPiece
                do throws(ServiceError) {
                    piece = try await client.readSnapshot(
                        SnapshotRequest(token: token, identifier: identifier, offset: offset))
                } catch {
                    guard error.code == .busy else { throw error }
                    if identifier == 0 {
                        // It is being made. A service that has too much to do says no time.
                        guard error.retryAfter != nil, System.millisecondsWithSleep < deadline else { throw error }
                        try? await Task.sleep(for: .milliseconds(Limits.snapshotAskMilliseconds))
                    } else {
                        // It is no longer there.
                        guard attempt < Limits.snapshotAttemptsMax else { throw error }
                        attempt += 1
                        deadline = System.millisecondsWithSleep + makingMilliseconds
                    }
                    continue attempts
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
            return size
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
