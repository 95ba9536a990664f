import Core
import Foundation
import Identity
import LoadHarness
import RootgateClient

let simulateCommand = Command(
    "simulate", "make people, devices and signed proofs, as JSON Lines",
    options: [
        .collaboration,
        Option("people", "N", standard: "1", "how many people"),
        Option("devices", "N", standard: "2", "devices of each"),
        Option("key-encoding", "NAME", standard: "uncompressed", "uncompressed, compressed or spki"),
        Option("signature-format", "NAME", standard: "der", "der or raw"),
        Option("roots-out", "FILE", "also write the root hashes, one in hexadecimal a line"),
        Option("seed", "N", "make the same people again (never for real secrets)"),
        Option(
            switch: "register", "with the service: make the collaboration, add the root hashes, sign its challenges"),
        Option(switch: "participants", "with --register: as participants of a collaboration that was prepared"),
        .server, .timeout, .quiet,
        Option(switch: "json", "accepted for consistency: the output is JSON Lines always"),
    ]
) { arguments in
    let collaboration = try collaborationOption(arguments)
    let peopleCount = try arguments.number("people", in: 1...1_000_000)
    let deviceCount = try arguments.number("devices", in: 1...4096)
    guard let encoding = KeyEncoding(rawValue: try arguments.required("key-encoding")) else {
        throw UsageError("--key-encoding is uncompressed, compressed or spki")
    }
    guard let format = SignatureFormat(name: try arguments.required("signature-format")) else {
        throw UsageError("--signature-format is der or raw")
    }
    var random = RandomSource.system
    if arguments.text("seed") != nil { random = .seeded(UInt64(try arguments.number("seed", in: 0...Int.max))) }

    let progress = progressMeter(arguments)
    defer { progress.end() }
    progress.begin("making people", share: 0...0.5)
    let identities = try (0..<peopleCount).map { number in
        progress.show("\(number) of \(peopleCount)", done: Double(number) / Double(peopleCount))
        return try Person(deviceCount: deviceCount, random: random)
            .identity(in: collaboration, encoding: encoding, random: random)
    }
    var client: RootgateClient?
    if arguments.isOn("register") {
        let service = try connect(arguments)
        if arguments.isOn("participants") {
            progress.begin("adding participants", share: 0.5...0.6)
            let people = identities.map { NewParticipant(PersonIdentity(rootHash: $0.rootHash)) }
            try await people.inChunks(of: Limits.participantsPerRequestMax, progress) { people in
                _ = try await service.send(AddParticipants(people, to: collaboration))
            }
        } else {
            progress.begin("adding root hashes", share: 0.5...0.6)
            try await service.createCollaboration(collaboration)
            try await service.addAll(identities.map(\.rootHash), to: collaboration, progress)
        }
        client = service
    }
    if let path = arguments.text("roots-out") {
        let text = identities.map { $0.rootHash.description + "\n" }.joined()
        try write(text, to: path)
    }
    progress.begin("signing", share: 0.6...1)
    for (number, identity) in identities.enumerated() {
        progress.show("\(number) of \(peopleCount) people", done: Double(number) / Double(peopleCount))
        for device in identity.keys.indices {
            let data = try await client?.challenge() ?? random.bytes(32)
            let proof = try identity.proof(ofDevice: device, signing: data, format: format)
            progress.printAside(try json(describe(proof, rootHash: identity.rootHash)))
        }
    }
    return .success
}

private func describe(_ proof: SignedIdentityProof, rootHash: Digest) -> [String: Any] {
    [
        "publicKey": Data(proof.publicKey).base64EncodedString(),
        "publicKeyIndex": proof.publicKeyIndex,
        "inclusionHashes": proof.inclusionHashes.map { Data($0.bytes).base64EncodedString() },
        "signature": Data(proof.signature).base64EncodedString(),
        "signatureFormat": proof.signatureFormat.name,
        "data": Data(proof.data).base64EncodedString(),
        "rootHash": rootHash.description,
    ]
}
