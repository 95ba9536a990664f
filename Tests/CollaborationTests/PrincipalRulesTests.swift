import Collaboration
import Core
import Foundation
import Principals
import Testing

/// The rules about principals and keys.
struct PrincipalRulesTests {
    private let world = World()

    private func name(_ text: String) throws -> PrincipalName { try #require(PrincipalName(text)) }

    private func newKey(_ key: APIKey = .random(), expiresAt: Date? = nil) -> NewKey {
        NewKey(KeyHash(key), expiresAt: expiresAt)
    }

    private let administer = LimitedRole(.administer, prefixes: [.every])

    /// The first administrator.
    @discardableResult
    private func begin() throws -> APIKey {
        let key = APIKey.random()
        try world.send(CreatePrincipal(try name("root"), roles: [administer], key: newKey(key)))
        return key
    }

    private func listed() throws -> [ListedPrincipal] { try world.send(ListPrincipals()).principals }

    private func directory() throws -> PrincipalDirectory { try PrincipalRecords.directory(world.storage) }

    @Test("The first principal must be an administrator that can be known for good")
    func first() throws {
        let root = try name("root")
        let verify = LimitedRole(.verify, prefixes: [.every])
        let later = world.now + 60
        #expect(world.code(of: CreatePrincipal(root, roles: [verify], key: newKey())) == .notPermitted)
        #expect(world.code(of: CreatePrincipal(root, roles: [administer])) == .notPermitted)
        #expect(world.code(of: CreatePrincipal(root, roles: [administer], certificates: [])) == .notPermitted)
        #expect(
            world.code(of: CreatePrincipal(root, roles: [administer], key: newKey(expiresAt: later))) == .notPermitted)
        #expect(
            world.code(of: CreatePrincipal(root, roles: [administer], key: newKey(), expiresAt: later))
                == .notPermitted)
        #expect(try !directory().isConfigured)
        try begin()
        #expect(try directory().isConfigured)
        // Later ones may be anybody.
        try world.send(CreatePrincipal(try name("watcher"), roles: [verify]))
        #expect(try listed().map(\.name.text) == ["root", "watcher"])
    }

    @Test("A service stays configured when its last principal is removed")
    func lastRemoved() throws {
        try begin()
        #expect(try world.send(RemovePrincipal(try name("root"))).changed == 1)
        #expect(try listed().isEmpty)
        #expect(try directory().isConfigured)
        #expect(try world.send(RemovePrincipal(try name("root"))).changed == 0)
    }

    @Test("A name, a certificate, a local user and a key belong to one principal")
    func distinct() throws {
        let key = try begin()
        let certificate = try #require(CertificateName("spiffe://example.org/x"))
        try world.send(
            CreatePrincipal(try name("one"), roles: [], certificates: [certificate], localUser: 7))
        let two = try name("two")
        #expect(world.code(of: CreatePrincipal(try name("root"), roles: [])) == .principalExists)
        #expect(world.code(of: CreatePrincipal(two, roles: [], certificates: [certificate])) == .principalExists)
        #expect(world.code(of: CreatePrincipal(two, roles: [], localUser: 7)) == .principalExists)
        #expect(world.code(of: CreatePrincipal(two, roles: [], key: newKey(key))) == .principalExists)
        try world.send(CreatePrincipal(two, roles: []))
        #expect(world.code(of: UpdatePrincipal(two, certificates: .set([certificate]))) == .principalExists)
        #expect(world.code(of: UpdatePrincipal(two, localUser: .set(7))) == .principalExists)
        #expect(world.code(of: AddKey(newKey(key), to: two)) == .principalExists)
        #expect(world.code(of: AddKey(newKey(key), to: try name("root"))) == .principalExists)
        try world.send(UpdatePrincipal(try name("one"), certificates: .clear, localUser: .clear))
        #expect(
            try world.send(UpdatePrincipal(two, certificates: .set([certificate]), localUser: .set(7))).changed == 1)
    }

    @Test("A key that has expired makes room although the date went back since")
    func expiryAndDate() throws {
        let root = try name("root")
        _ = try begin()
        try world.send(AddKey(newKey(APIKey.random(), expiresAt: world.now + 60), to: root))
        let third = AddKey(newKey(APIKey.random()), to: root)
        world.durableTime = world.now + 59
        #expect(world.code(of: third) == .limitExceeded)
        world.durableTime = world.now + 60
        #expect(world.code(of: third) == nil)
    }

    @Test("Two keys are valid at once, a third is refused, and an expired one makes room")
    func rotation() throws {
        let root = try name("root")
        let (first, second, third) = (try begin(), APIKey.random(), APIKey.random())
        try world.send(AddKey(newKey(second, expiresAt: world.now + 60), to: root))
        for key in [first, second] {
            #expect(try directory().match(key, at: world.now)?.principal.name == root)
        }
        let refusal = try #require(world.error(of: AddKey(newKey(third), to: root)))
        #expect(refusal.code == .limitExceeded && refusal.detail == 2)
        world.now += 60
        try world.send(AddKey(newKey(third), to: root))
        #expect(try directory().match(second, at: world.now) == nil)
        #expect(try directory().match(third, at: world.now) != nil)
        #expect(try world.send(RemoveKey(first.identifier)).changed == 1)
        #expect(try world.send(RemoveKey(first.identifier)).changed == 0)
        #expect(try directory().match(first, at: world.now) == nil)
        #expect(try listed()[0].keys.map(\.identifier) == [third.identifier])
    }

    @Test("An update changes what it names and leaves the rest, and an update of nothing changes nothing")
    func updates() throws {
        try begin()
        let one = try name("one")
        #expect(world.code(of: UpdatePrincipal(one)) == .unknownPrincipal)
        #expect(world.code(of: AddKey(newKey(), to: one)) == .unknownPrincipal)
        let a = try #require(CollaborationPrefix("a/"))
        try world.send(
            CreatePrincipal(
                one, roles: [LimitedRole(.verify, prefixes: [a])], key: newKey(), localUser: 7,
                limits: PrincipalLimits(proofsPerSecond: 5), expiresAt: world.now + 60))
        #expect(try world.send(UpdatePrincipal(one)).changed == 0)
        #expect(try world.edit(UpdatePrincipal(one)) == nil)
        try world.send(UpdatePrincipal(one, roles: .set([LimitedRole(.observe, prefixes: [.every])])))
        var listed = try #require(try listed().first { $0.name == one })
        #expect(listed.roles == [LimitedRole(.observe, prefixes: [.every])])
        #expect(listed.keys.count == 1 && listed.localUser == 7 && listed.limits.proofsPerSecond == 5)
        try world.send(
            UpdatePrincipal(one, roles: .clear, localUser: .clear, limits: .clear, expiresAt: .clear))
        listed = try #require(try self.listed().first { $0.name == one })
        #expect(listed.roles == [] && listed.localUser == nil && listed.limits == PrincipalLimits())
        #expect(listed.expiresAt == nil && listed.keys.count == 1)
    }

    @Test("Changed limits leave the others as they are, and exclude a list of all limits")
    func changedLimits() throws {
        try begin()
        let one = try name("one")
        func limits() throws -> PrincipalLimits? { try listed().first { $0.name == one }?.limits }
        try world.send(CreatePrincipal(one, roles: [], limits: PrincipalLimits(requestBytes: 9, followers: 1)))
        // Two operators have seen the same limits, and each changes another one.
        try world.send(UpdatePrincipal(one, changedLimits: LimitChanges(proofsPerSecond: .set(5), followers: .set(2))))
        try world.send(
            UpdatePrincipal(one, changedLimits: LimitChanges(requestBytes: .clear, mutationsPerSecond: .set(0))))
        #expect(try limits() == PrincipalLimits(proofsPerSecond: 5, followers: 2, mutationsPerSecond: 0))
        #expect(try world.edit(UpdatePrincipal(one, changedLimits: LimitChanges())) == nil)
        for kind in PrincipalLimits.Kind.allCases {
            try world.send(UpdatePrincipal(one, changedLimits: LimitChanges([kind: .set(7)])))
            #expect(try limits()?[kind] == 7)
            try world.send(UpdatePrincipal(one, changedLimits: LimitChanges([kind: .set(1 << 40)])))
            #expect(try limits()?[kind] == 1 << 40)
            try world.send(UpdatePrincipal(one, changedLimits: LimitChanges([kind: .clear])))
            #expect(try limits()?[kind] == nil)
            for (value, code) in [(-1, ServiceError.Code.malformedRequest), (1 << 40 + 1, .limitExceeded)] {
                let error = world.error(of: UpdatePrincipal(one, changedLimits: LimitChanges([kind: .set(value)])))
                #expect(error?.code == code && error?.reason.contains("changedLimits.\(kind.rawValue)") == true)
            }
        }
        for limits in [Patch.clear, .set(PrincipalLimits())] {
            let both = UpdatePrincipal(one, limits: limits, changedLimits: LimitChanges())
            #expect(world.code(of: both) == .malformedRequest)
        }
    }

    @Test("An update that changes nothing and could give something later is remembered, and one that only takes is not")
    func remembered() throws {
        try begin()
        let one = try name("one")
        let roles = [LimitedRole(.verify, prefixes: [.every])]
        let limits = PrincipalLimits(followers: 1)
        let certificate = try #require(CertificateName("dns:one.example"))
        try world.send(
            CreatePrincipal(
                one, roles: roles, certificates: [certificate], localUser: 7, limits: limits,
                expiresAt: world.now + 60))
        for update in [
            UpdatePrincipal(one, roles: .set(roles)), UpdatePrincipal(one, certificates: .set([certificate])),
            UpdatePrincipal(one, localUser: .set(7)), UpdatePrincipal(one, limits: .set(limits)),
            UpdatePrincipal(one, changedLimits: LimitChanges(followers: .set(1))),
            UpdatePrincipal(one, expiresAt: .set(world.now + 60)),
        ] {
            let edit = try #require(try world.edit(update), "\(update)")
            #expect(edit.isEmpty)
            let receipt = try world.send(update)
            #expect(receipt.changed == 0 && receipt.sequence != nil)
            // It is decided again when the principal has changed.
            #expect(!PrincipalRecords.areChanged(by: edit))
        }
        let before = try world.edit(UpdatePrincipal(one, roles: .set(roles)))
        try world.send(UpdatePrincipal(one, roles: .clear, certificates: .clear, localUser: .clear))
        #expect(try world.isStale(before))
        #expect(try world.edit(UpdatePrincipal(one, roles: .clear, certificates: .clear, localUser: .clear)) == nil)
    }

    @Test("Roles that say nothing, or that are limited in a way they don't have, are refused")
    func malformedRoles() throws {
        try begin()
        let a = try #require(CollaborationPrefix("a/"))
        for role in [
            LimitedRole(.verify, prefixes: []), LimitedRole(.verify, prefixes: [.every, a]),
            LimitedRole(.administer, prefixes: [a]), LimitedRole(.observe, prefixes: [.every], app: "x"),
            LimitedRole(.collaborate, prefixes: [.every], app: ""),
            LimitedRole(.collaborate, prefixes: [.every], app: "\u{0}"),
        ] {
            #expect(world.code(of: CreatePrincipal(try name("x"), roles: [role])) == .malformedRequest, "\(role)")
            #expect(world.code(of: UpdatePrincipal(try name("root"), roles: .set([role]))) == .malformedRequest)
        }
    }

    @Test("One more than each limit is refused")
    func limits() throws {
        try begin()
        let one = try name("one")
        func roles(_ count: Int, prefixes: Int) throws -> [LimitedRole] {
            try (0..<count).map { _ in
                LimitedRole(.verify, prefixes: try (0..<prefixes).map { try #require(CollaborationPrefix("\($0)/")) })
            }
        }
        let names = try (0..<9).map { try #require(CertificateName("dns:\($0).example")) }
        #expect(world.code(of: CreatePrincipal(one, roles: try roles(33, prefixes: 1))) == .limitExceeded)
        #expect(world.code(of: CreatePrincipal(one, roles: try roles(1, prefixes: 65))) == .limitExceeded)
        #expect(world.code(of: CreatePrincipal(one, roles: try roles(5, prefixes: 13))) == .limitExceeded)
        #expect(world.code(of: CreatePrincipal(one, roles: [], certificates: names)) == .limitExceeded)
        for limits in [
            PrincipalLimits(proofsPerSecond: 1 << 40 + 1), PrincipalLimits(requestsInFlight: 1 << 40 + 1),
            PrincipalLimits(requestBytes: 1 << 40 + 1), PrincipalLimits(followers: 1 << 40 + 1),
            PrincipalLimits(mutationsPerSecond: 1 << 40 + 1),
        ] {
            #expect(world.code(of: CreatePrincipal(one, roles: [], limits: limits)) == .limitExceeded)
        }
        #expect(
            world.code(of: CreatePrincipal(one, roles: [], limits: PrincipalLimits(followers: -1)))
                == .malformedRequest)
        #expect(world.code(of: ListPrincipals(limit: 256)) == nil)
        #expect(world.code(of: ListPrincipals(limit: 257)) == .limitExceeded)
        #expect(world.code(of: ListPrincipals(limit: 0)) == .malformedRequest)
        try world.send(
            CreatePrincipal(one, roles: try roles(32, prefixes: 2), certificates: Array(names.prefix(8))))
    }

    @Test("There are at most 1,024 principals, and all of them are listed in pages")
    func most() throws {
        try begin()
        for number in 1..<1024 { try world.send(CreatePrincipal(try name("p\(number)"), roles: [])) }
        #expect(world.code(of: CreatePrincipal(try name("more"), roles: [])) == .limitExceeded)
        var names: [String] = []
        var after: PrincipalName?
        repeat {
            let page = try world.send(ListPrincipals(after: after, limit: 100))
            names += page.principals.map(\.name.text)
            after = page.hasMore ? page.principals.last?.name : nil
        } while after != nil
        #expect(names == ((1..<1024).map { "p\($0)" } + ["root"]).sorted())
        try world.send(RemovePrincipal(try name("p7")))
        try world.send(CreatePrincipal(try name("more"), roles: []))
    }

    @Test("An expiry in the past is refused")
    func expiries() throws {
        try begin()
        let one = try name("one")
        #expect(world.code(of: CreatePrincipal(one, roles: [], expiresAt: world.now)) == .malformedRequest)
        #expect(
            world.code(of: CreatePrincipal(one, roles: [], key: newKey(expiresAt: world.now))) == .malformedRequest)
        #expect(
            world.code(of: AddKey(newKey(expiresAt: world.now), to: try name("root"))) == .malformedRequest)
    }

    @Test("Two changes that were decided on the same principals are not both made")
    func concurrency() throws {
        try begin()
        let edit = try world.edit(CreatePrincipal(try name("one"), roles: [], localUser: 7))
        try world.send(CreatePrincipal(try name("two"), roles: [], localUser: 7))
        #expect(try world.isStale(edit))
    }

    @Test("A last use is noted for a key that is there, and is stale for one that was removed")
    func uses() throws {
        let key = try begin()
        let root = try name("root")
        #expect(try listed()[0].keys[0].lastUsedAt == nil)
        let use = PrincipalRecords.use(of: root, key.identifier, milliseconds: 1_760_000_001_000)
        #expect(!use.needsSpace && !PrincipalRecords.areChanged(by: use))
        _ = try world.storage.apply(use)
        #expect(try listed()[0].keys[0].lastUsedAt == Date(timeIntervalSince1970: 1_760_000_001))
        try world.send(RemoveKey(key.identifier))
        #expect(try world.isStale(use))
    }

    @Test("Removals need no space")
    func space() throws {
        let key = try begin()
        for edit in [
            try world.edit(RemoveKey(key.identifier)), try world.edit(RemovePrincipal(try name("root"))),
            try world.edit(UpdatePrincipal(try name("root"), roles: .clear)),
        ] {
            #expect(try !#require(edit).needsSpace)
        }
    }

    @Test("An audit's summary names the principal and the keys that come and go, and no hash")
    func summaries() throws {
        let key = try begin()
        let root = try name("root")
        func summary(_ request: some RuledRequest) throws -> String {
            PrincipalRecords.summary(of: try #require(try world.edit(request)))
        }
        let second = APIKey.random()
        let added = try summary(AddKey(newKey(second), to: root))
        #expect(added == "root changed, key \(second.identifier) added")
        #expect(try summary(RemoveKey(key.identifier)) == "root changed, key \(key.identifier) removed")
        #expect(try summary(RemovePrincipal(root)) == "root removed")
        #expect(try summary(CreatePrincipal(try name("one"), roles: [])) == "one created")
    }
}
