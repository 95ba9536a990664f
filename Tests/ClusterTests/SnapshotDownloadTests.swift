import Core
import Foundation
import Hashing
import TestSupport
import Testing
import Transport
import Wire

@testable import Cluster

/// Snapshots of a service that gives something else than it should.
@Suite("Snapshots that are downloaded") struct SnapshotDownloadTests {
    /// Answers hello, and each question for a piece as a function of the offset says.
    private final class Giver: Sendable {
        private let acceptor: Acceptor
        let asked = Shared<[UInt64]>([])

        /// `nil`: the service is busy.
        init(_ piece: @escaping @Sendable (UInt64) -> SnapshotPiece?) throws {
            let asked = asked
            acceptor = try Acceptor { connection in
                let peer = RawPeer(descriptor: connection)
                while true {
                    let head = peer.receive(Limits.frameHeaderBytes)
                    let header = head.withRawBytes { FrameScanner.header(ofIncomplete: $0) }
                    // The next connection of the same start follows.
                    guard let header else { return true }
                    let body = peer.receive(header.bodyLength)
                    var answer: [UInt8] = []
                    if header.operation == Operation.hello.rawValue {
                        let hello = HelloAnswer(version: 1, features: [], limits: [15: 7], software: "giver")
                        FrameWriter.append(.answer, header.operation, requestID: header.requestID, to: &answer) {
                            hello.append(to: &$0)
                        }
                    } else {
                        let offset = body.suffix(8).reversed().reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
                        asked.with { $0.append(offset) }
                        if let piece = piece(offset) {
                            FrameWriter.append(.answer, header.operation, requestID: header.requestID, to: &answer) {
                                piece.append(to: &$0)
                            }
                        } else {
                            FrameWriter.appendError(
                                ServiceError(.busy, detail: 1, "wait"), operation: header.operation,
                                requestID: header.requestID,
                                to: &answer)
                        }
                    }
                    guard peer.send(answer) else { return true }
                }
            }
        }

        var endpoint: Endpoint { acceptor.endpoint }
    }

    private static let whole = UInt64(Limits.snapshotPieceBytes)

    /// Downloads the snapshot of a giver. Returns the failure, and the bytes that were written.
    private func download(
        from giver: Giver, bytesMax: UInt64 = 4 * whole, makingMilliseconds: UInt64 = 60_000,
        onWait: StartExtension = .none
    ) throws -> (failure: ServiceError?, bytes: UInt64) {
        let scratch = ScratchDirectory()
        let file = open(scratch.path + "/file", O_RDWR | O_CREAT, 0o600)
        try #require(file >= 0)
        defer { close(file) }
        var peers = ClusterSettings.Peers(address: Endpoint(host: "127.0.0.1", port: 1), tls: nil)
        peers.key = MessageAuthenticator(key: [UInt8](repeating: 1, count: 32))
        let download = SnapshotDownload(
            peers: peers, bytesMax: bytesMax, makingMilliseconds: makingMilliseconds, onWait: onWait)
        let failure = thrown(ServiceError.self) { _ = try download.get(from: giver.endpoint, to: file) }
        return (failure, UInt64(lseek(file, 0, SEEK_END)))
    }

    private func piece(_ count: UInt64, of size: UInt64, identifier: UInt64 = 9) -> SnapshotPiece {
        SnapshotPiece(identifier: identifier, size: size, bytes: [UInt8](repeating: 5, count: Int(count)))
    }

    @Test("A snapshot of whole pieces and a rest is written")
    func wholePieces() throws {
        let size = Self.whole + 3
        let giver = try Giver { offset in piece(min(Self.whole, size - offset), of: size) }
        let (failure, bytes) = try download(from: giver, bytesMax: size)
        #expect(failure == nil && bytes == size && giver.asked.value == [0, Self.whole])
    }

    @Test("A snapshot that is being made is asked for again, and the start says each time that it goes on")
    func making() throws {
        let count = Shared(0)
        let giver = try Giver { _ in
            count.with { $0 += 1 }
            return count.value < 4 ? nil : piece(3, of: 3)
        }
        let words = Shared<[String]>([])
        let (failure, bytes) = try download(
            from: giver, onWait: StartExtension { seconds, status in words.with { $0.append("\(seconds) \(status)") } })
        #expect(failure == nil && bytes == 3 && giver.asked.value == [0, 0, 0, 0])
        let word = "180 getting a snapshot of \(giver.endpoint)"
        #expect(words.value == [word, word, word, word])
    }

    @Test("A snapshot that is not made in time is given up, and so is one that is replaced again and again")
    func neverMade() throws {
        let making = try Giver { _ in nil }
        #expect(try download(from: making, makingMilliseconds: 1).failure?.code == .busy)
        #expect(making.asked.value.count <= 2)
        let size = Self.whole + 3
        let replaced = try Giver { $0 == 0 ? piece(Self.whole, of: size) : nil }
        #expect(try download(from: replaced).failure?.code == .busy)
        #expect(replaced.asked.value == [0, Self.whole, 0, Self.whole, 0, Self.whole])
    }

    @Test("A snapshot that has one byte more than there is room for is refused at its first piece")
    func tooLarge() throws {
        let size = Self.whole + 3
        let giver = try Giver { offset in piece(min(Self.whole, size - offset), of: size) }
        let (failure, bytes) = try download(from: giver, bytesMax: size - 1)
        #expect(failure?.reason.contains("raise --storage-max") == true, "\(failure?.reason ?? "")")
        #expect(bytes == 0 && giver.asked.value == [0])
    }

    @Test("A piece that is not whole, empty or longer than the rest ends the download, and so does another snapshot")
    func strangePieces() throws {
        let (whole, size) = (Self.whole, Self.whole + 3)
        let pieces: [(String, @Sendable (UInt64) -> SnapshotPiece)] = [
            ("one byte", { _ in piece(1, of: size) }), ("one byte less", { _ in piece(whole - 1, of: size) }),
            ("one byte more", { _ in piece(whole + 1, of: size) }), ("nothing", { _ in piece(0, of: size) }),
            ("nothing of nothing", { _ in piece(0, of: 0) }),
            ("more than the rest", { offset in piece(offset == 0 ? whole : 4, of: size) }),
            ("less than the rest", { offset in piece(offset == 0 ? whole : 2, of: size) }),
            ("a smaller snapshot", { offset in piece(offset == 0 ? whole : 1, of: offset == 0 ? size : 1) }),
            ("another one", { offset in piece(offset == 0 ? whole : 3, of: size, identifier: offset == 0 ? 9 : 8) }),
        ]
        for (name, piece) in pieces {
            let giver = try Giver(piece)
            let (failure, _) = try download(from: giver)
            #expect(failure != nil && giver.asked.value.count <= 2, "\(name): \(giver.asked.value)")
        }
    }
}
