import Core
import TestSupport
import Testing

@testable import Transport

@Suite struct MemoryBudgetTests {
    private static let mebibyte = 1 << 20

    @Test("A peer alone may hold half of the memory, and one connection a quarter of that")
    func alone() {
        let budget = MemoryBudget(bytesMax: 256 << 20)
        let peer = Holder.address(UInt32(1))
        let accounts = (0..<9).map { _ in budget.account(for: peer) }
        var charges: [(MemoryAccount, MemoryCharge)] = []
        var held: [Int] = []
        for account in accounts {
            var bytes = 0
            while let charge = account.reserve(MemoryBudgetTests.mebibyte, isUrgent: false) {
                charges.append((account, charge))
                bytes += charge.bytes
            }
            held.append(bytes >> 20)
        }
        // Three quarters of the memory are for every request: 192 MiB, of which a peer alone may hold 96.
        #expect(held == [24, 24, 24, 24, 0, 0, 0, 0, 0])
        #expect(accounts[0].isStrained && accounts[8].isStrained)
        let newcomer = budget.account(for: .address(UInt32(2)))
        let charge = newcomer.reserve(12 << 20, isUrgent: false)
        #expect(charge != nil)
        if let charge { newcomer.giveBack(charge) }
        for (account, charge) in charges { account.giveBack(charge) }
        #expect(budget.heldBytes == 0 && !accounts[0].isStrained)
    }

    @Test("When the common part is taken, urgent requests use the reserve, and others don't")
    func reserve() throws {
        let budget = MemoryBudget(bytesMax: 256 << 20)
        let peers = (0..<8).map { budget.account(for: .address(UInt32($0))) }
        var charges: [(MemoryAccount, MemoryCharge)] = []
        func fill(isUrgent: Bool) {
            var isTaken = true
            while isTaken {
                isTaken = false
                for peer in peers {
                    guard let charge = peer.reserve(MemoryBudgetTests.mebibyte, isUrgent: isUrgent) else { continue }
                    charges.append((peer, charge))
                    isTaken = true
                }
            }
        }
        fill(isUrgent: false)
        #expect(charges.allSatisfy { $0.1.urgent == 0 })
        let common = budget.heldBytes
        fill(isUrgent: true)
        #expect(budget.heldBytes > common && budget.heldBytes < 256 << 20)
        let newcomer = budget.account(for: .address(UInt32(99)))
        let charge = try #require(newcomer.reserve(MemoryBudgetTests.mebibyte, isUrgent: true))
        newcomer.giveBack(charge)
        for (account, charge) in charges { account.giveBack(charge) }
        #expect(budget.heldBytes == 0)
    }

    @Test("A limit is for all connections of a peer together, and for the common part and the reserve")
    func limited() throws {
        let budget = MemoryBudget(bytesMax: 256 << 20)
        let accounts = (0..<2).map { _ in budget.account(for: .principal(7)) }
        let first = try #require(accounts[0].reserve(600, isUrgent: false, within: 1000))
        #expect(accounts[1].reserve(401, isUrgent: false, within: 1000) == nil)
        #expect(accounts[1].reserve(401, isUrgent: true, within: 1000) == nil)
        let second = try #require(accounts[1].reserve(400, isUrgent: true, within: 1000))
        #expect(accounts[0].peerBytes == 1000 && accounts[0].heldBytes == 600)
        accounts[0].giveBack(first)
        accounts[1].giveBack(second)
        #expect(accounts[1].peerBytes == 0)
    }

    @Test("In the smallest budget a connection alone may hold the longest request, and one byte more is refused")
    func smallest() throws {
        let budget = MemoryBudget(bytesMax: Limits.requestMemoryBytesMin)
        let account = budget.account(for: .address(UInt32(1)))
        let charge = try #require(account.reserve(Limits.memoryPerRequestMax, isUrgent: false))
        #expect(account.reserve(1, isUrgent: false) == nil)
        let urgent = try #require(account.reserve(Limits.urgentMemoryPerRequestMax, isUrgent: true))
        #expect(account.reserve(1 << 20, isUrgent: true) == nil)
        account.giveBack(charge)
        account.giveBack(urgent)
    }

    @Test("What a connection holds counts for the peer that it turns out to be")
    func moved() throws {
        let budget = MemoryBudget(bytesMax: 256 << 20)
        let (first, second) = (budget.account(for: .address(UInt32(1))), budget.account(for: .address(UInt32(2))))
        let charge = try #require(first.reserve(24 << 20, isUrgent: false))
        second.move(to: .principal(7))
        first.move(to: .principal(7))
        var more: [MemoryCharge] = []
        while let charge = second.reserve(MemoryBudgetTests.mebibyte, isUrgent: false) { more.append(charge) }
        #expect(more.count == 24)
        let third = budget.account(for: .principal(7))
        var others: [MemoryCharge] = []
        while let charge = third.reserve(MemoryBudgetTests.mebibyte, isUrgent: false) { others.append(charge) }
        #expect(others.count == 24)
        first.giveBack(charge)
        for charge in more { second.giveBack(charge) }
        for charge in others { third.giveBack(charge) }
        #expect(budget.heldBytes == 0)
    }

    @Test("Random reservations of threads leave nothing held, and never more than there is")
    func random() {
        let budget = MemoryBudget(bytesMax: 16 << 20)
        let seed = runSeed
        let excess = Shared(0)
        onThreads(4) { thread in
            var random = SeededGenerator(seed: seed &+ UInt64(thread))
            let accounts = (0..<4).map { budget.account(for: .address(UInt32($0))) }
            var held: [(Int, MemoryCharge)] = []
            for _ in 0..<5000 {
                if Bool.random(using: &random), !held.isEmpty {
                    var (place, charge) = held.remove(at: Int.random(in: 0..<held.count, using: &random))
                    let part = charge.split(Int.random(in: 0...charge.bytes, using: &random))
                    accounts[place].giveBack(part)
                    accounts[place].giveBack(charge)
                } else {
                    let place = Int.random(in: 0..<4, using: &random)
                    let bytes = Int.random(in: 0..<100_000, using: &random)
                    if let charge = accounts[place].reserve(bytes, isUrgent: Bool.random(using: &random)) {
                        held.append((place, charge))
                    }
                }
                if budget.heldBytes > 16 << 20 { excess.increment() }
            }
            for (place, charge) in held { accounts[place].giveBack(charge) }
        }
        #expect(budget.heldBytes == 0 && excess.value == 0, "seed \(runSeed)")
    }

    @Test("Giving back more than was reserved stops the process")
    func tooMuchGivenBack() async {
        await #expect(processExitsWith: .failure) {
            let account = MemoryBudget(bytesMax: 8 << 20).account(for: .service)
            account.giveBack(MemoryCharge(common: 1))
        }
    }
}
