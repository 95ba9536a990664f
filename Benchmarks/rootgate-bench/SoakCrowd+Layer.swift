import Collaboration
import Core
import Foundation
import LoadHarness
import RootSets
import RootgateClient

/// What devices, apps and the operator do.
extension SoakCrowd {
    private static let documents = 4
    private static let people = 32
    /// Links that are shared in turn. A share that is there already is replaced, so the storage keeps its size.
    private static let links = 65

    /// Devices open documents over TLS. Their grants are checked, until sharing stops: then they are revoked. Documents
    /// that a restart finds stay shared.
    func openDocuments(at place: Int) async throws(ServiceError) {
        let client = try cluster.client(place, isEncrypted: true)
        defer { client.close() }
        let shared = try await SharedCollaborations(SoakCrowd.documents, haveParticipants: true, client)
        var checks: [GrantCheck] = []
        do throws(ServiceError) {
            let population = try Population(people: SoakCrowd.people, devices: 1...2, in: shared.identifiers)
            try await shared.add(population)
            checks = try await shared.takeGrants(SoakCrowd.people, for: population).map { held in
                GrantCheck(held.grant, in: shared.identifiers[held.collaboration], deviceKey: held.deviceKey)
            }
            for _ in 0..<100 where goesOn {
                try await check(checks, with: client, are: .valid)
                try? await Task.sleep(for: .milliseconds(20))
            }
        } catch {
            try? await shared.end()
            throw error
        }
        try await shared.end()
        try await check(checks, with: client, are: .revoked)
    }

    private func check(
        _ checks: [GrantCheck], with client: RootgateClient, are status: GrantStatus
    ) async throws(ServiceError) {
        let decisions = try await client.check(checks)
        if let other = decisions.first(where: { $0.status != status }) {
            throw ServiceError(.internalFault, "a grant is \(other.status.name) instead of \(status.name)")
        }
        note { $0.grants += decisions.count }
    }

    /// People share links in a conversation. The recipients' apps read the shelves.
    func fillShelves(at place: Int) async throws(ServiceError) {
        let client = try cluster.client(place, isEncrypted: true)
        defer { client.close() }
        let people = (0..<SoakCrowd.people).compactMap { Account("soak-\($0)") }
        for person in people { _ = try await client.send(SetConsent(of: person, .everything, isAllowed: true)) }
        var round = 0
        while goesOn {
            let (sharer, reader) = (people[round % people.count], people[(round + 1) % people.count])
            guard let link = URL(string: "https://example.org/\(round % SoakCrowd.links)") else { return }
            _ = try await client.send(
                RecordShare(
                    url: link, title: "Plans", app: "org.example.reader", sharer: Sharer(name: "Ana", account: sharer),
                    conversation: Conversation(identifier: "soak"), recipients: [ShareRecipient(reader)]))
            let shelf = try await client.send(ReadShelf(of: reader, for: .app("org.example.reader"), limit: 8))
            guard shelf.highlights.contains(where: { $0.url == link }) else {
                throw ServiceError(.internalFault, "a shelf lacks what was shared")
            }
            note { $0.shares += 1 }
            round += 1
            try? await Task.sleep(for: .milliseconds(50))
        }
    }

    /// Makes a backup every ten seconds, which nobody keeps, on a thread of its own.
    func backUp(at place: Int) async throws(ServiceError) {
        while goesOn {
            let directory = cluster.dataDirectories[place]
            let result = await withCheckedContinuation { continuation in
                Thread { continuation.resume(returning: SoakCrowd.backUp(directory)) }.start()
            }
            try result.get()
            note { $0.backups += 1 }
            for _ in 0..<100 where goesOn { try? await Task.sleep(for: .milliseconds(100)) }
        }
    }

    private static func backUp(_ directory: String) -> Result<Void, ServiceError> {
        let nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC)
        guard nowhere >= 0 else { return .failure(ServiceError(.internalFault, "/dev/null can't be opened")) }
        defer { close(nowhere) }
        let time = UInt64(Date().timeIntervalSince1970 * 1000)
        do throws(ServiceError) {
            _ = try StorageBackup.write(directory, to: nowhere, time: time, rate: nil, progress: { _ in })
            return .success(())
        } catch {
            return .failure(error)
        }
    }
}
