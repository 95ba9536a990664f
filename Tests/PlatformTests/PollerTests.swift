import Foundation
import Platform
import TestSupport
import Testing

/// A pipe whose ends don't block.
final class TestPipe {
    private(set) var reader: CInt = -1
    private(set) var writer: CInt = -1

    init() throws {
        var ends: [CInt] = [-1, -1]
        try #require(pipe(&ends) == 0)
        (reader, writer) = (ends[0], ends[1])
        for end in ends { _ = fcntl(end, F_SETFL, O_NONBLOCK) }
    }

    deinit {
        close(reader)
        closeWriter()
    }

    func closeWriter() {
        if writer >= 0 { close(writer) }
        writer = -1
    }

    @discardableResult
    func put(_ count: Int) -> Int {
        write(writer, [UInt8](repeating: 1, count: count), count)
    }

    @discardableResult
    func take(_ count: Int) -> Int {
        var bytes = [UInt8](repeating: 0, count: count)
        return read(reader, &bytes, count)
    }

    func fill() {
        while put(4096) > 0 {}
        while put(1) > 0 {}
    }

    func empty() {
        while take(65_536) > 0 {}
    }
}

extension Poller {
    /// What is ready now, by descriptor.
    func readyNow(waiting milliseconds: CInt = 0) -> [CInt: Interest] {
        var ready: [Readiness] = []
        wait(milliseconds: milliseconds, into: &ready)
        return Dictionary(ready.map { ($0.descriptor, $0.interest) }) { $0.union($1) }
    }
}

@Suite("Pollers")
struct PollerTests {
    @Test("A pipe is readable while bytes are in it", arguments: PollerKind.allCases)
    func readable(kind: PollerKind) throws {
        let poller = try kind.make()
        let pipe = try TestPipe()
        try poller.watch(pipe.reader, for: .reading, isNew: true)
        #expect(poller.readyNow().isEmpty)
        pipe.put(2)
        #expect(poller.readyNow() == [pipe.reader: .reading])
        pipe.take(1)
        #expect(poller.readyNow(waiting: -1) == [pipe.reader: .reading])
        pipe.take(1)
        #expect(poller.readyNow().isEmpty)
    }

    @Test("A pipe is writable while there is room in it", arguments: PollerKind.allCases)
    func writable(kind: PollerKind) throws {
        let poller = try kind.make()
        let pipe = try TestPipe()
        try poller.watch(pipe.writer, for: .writing, isNew: true)
        #expect(poller.readyNow() == [pipe.writer: .writing])
        pipe.fill()
        #expect(poller.readyNow().isEmpty)
        pipe.empty()
        #expect(poller.readyNow() == [pipe.writer: .writing])
    }

    @Test("A thousand ready descriptors are told at once", arguments: PollerKind.allCases)
    func thousand(kind: PollerKind) throws {
        #expect(System.raiseDescriptorLimit() > 2200)
        let poller = try kind.make()
        let pipes = try (0..<1000).map { _ in try TestPipe() }
        for pipe in pipes {
            try poller.watch(pipe.reader, for: .reading, isNew: true)
            pipe.put(1)
        }
        #expect(poller.readyNow().count == 1000)
        withExtendedLifetime(pipes) {}
    }

    @Test("A forgotten descriptor is never ready", arguments: PollerKind.allCases)
    func forgotten(kind: PollerKind) throws {
        let poller = try kind.make()
        let (one, other) = (try TestPipe(), try TestPipe())
        for pipe in [one, other] {
            pipe.put(1)
            try poller.watch(pipe.reader, for: .reading, isNew: true)
        }
        poller.forget(one.reader)
        #expect(poller.readyNow() == [other.reader: .reading])
        poller.forget(other.reader)
        #expect(poller.readyNow().isEmpty)
        try poller.watch(one.reader, for: .reading, isNew: true)
        #expect(poller.readyNow() == [one.reader: .reading])
    }

    @Test("Forgetting a descriptor that is not watched changes nothing", arguments: PollerKind.allCases)
    func forgottenStranger(kind: PollerKind) throws {
        let poller = try kind.make()
        let (watched, stranger) = (try TestPipe(), try TestPipe())
        watched.put(1)
        try poller.watch(watched.reader, for: .reading, isNew: true)
        poller.forget(stranger.reader)
        #expect(poller.readyNow() == [watched.reader: .reading])
    }

    @Test("A changed interest takes the place of the one before", arguments: PollerKind.allCases)
    func changed(kind: PollerKind) throws {
        let poller = try kind.make()
        var ends: [CInt] = [-1, -1]
        try #require(socketpair(AF_UNIX, System.streamSocket, 0, &ends) == 0)
        defer { for end in ends { close(end) } }
        #expect(write(ends[1], [1 as UInt8], 1) == 1)
        try poller.watch(ends[0], for: .reading, isNew: true)
        #expect(poller.readyNow() == [ends[0]: .reading])
        try poller.watch(ends[0], for: .writing, isNew: false)
        #expect(poller.readyNow() == [ends[0]: .writing])
        try poller.watch(ends[0], for: [.reading, .writing], isNew: false)
        #expect(poller.readyNow() == [ends[0]: [.reading, .writing]])
        try poller.watch(ends[0], for: [], isNew: false)
        #expect(poller.readyNow().isEmpty)
    }

    @Test("A peer that hung up shows as ended and readable, whatever the interest", arguments: PollerKind.allCases)
    func hangUp(kind: PollerKind) throws {
        let poller = try kind.make()
        let pipe = try TestPipe()
        try poller.watch(pipe.reader, for: [], isNew: true)
        #expect(poller.readyNow().isEmpty)
        pipe.closeWriter()
        #expect(poller.readyNow() == [pipe.reader: [.reading, .ended]])
    }

    @Test("Waiting replaces what was ready before", arguments: PollerKind.allCases)
    func replaces(kind: PollerKind) throws {
        let poller = try kind.make()
        let pipe = try TestPipe()
        try poller.watch(pipe.reader, for: .reading, isNew: true)
        pipe.put(1)
        var ready: [Readiness] = []
        poller.wait(milliseconds: 0, into: &ready)
        #expect(ready.count == 1)
        pipe.take(1)
        poller.wait(milliseconds: 1, into: &ready)
        #expect(ready.isEmpty)
    }

    @Test("Both pollers say what a model of many pipes says")
    func differential() throws {
        var random = SeededGenerator(seed: runSeed)
        let pollers = [try PollerKind.portable.make(), try PollerKind.systems.make()]
        let pipes = try (0..<24).map { _ in try TestPipe() }
        var held = [Int](repeating: 0, count: pipes.count)
        var interests = [Interest?](repeating: nil, count: pipes.count)
        for step in 0..<3000 {
            let at = Int.random(in: pipes.indices, using: &random)
            switch Int.random(in: 0..<5, using: &random) {
            case 0:
                let interest: Interest = Bool.random(using: &random) ? .reading : []
                for poller in pollers {
                    try poller.watch(pipes[at].reader, for: interest, isNew: interests[at] == nil)
                }
                interests[at] = interest
            case 1 where interests[at] != nil:
                for poller in pollers { poller.forget(pipes[at].reader) }
                interests[at] = nil
            case 2, 3:
                held[at] += pipes[at].put(Int.random(in: 1...10, using: &random))
            default:
                if held[at] > 0 { held[at] -= pipes[at].take(Int.random(in: 1...20, using: &random)) }
            }
            let expected = Set(
                pipes.indices.filter { interests[$0] == .reading && held[$0] > 0 }.map { pipes[$0].reader })
            for poller in pollers {
                let ready = poller.readyNow()
                #expect(Set(ready.keys) == expected, "seed \(runSeed), step \(step)")
                #expect(ready.values.allSatisfy { $0 == .reading }, "seed \(runSeed), step \(step)")
            }
        }
    }
}
