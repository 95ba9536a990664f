import Core
import Foundation
import Identity
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
        .server, .timeout,
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

    let identities = try (0..<peopleCount).map { _ in
        try Person(deviceCount: deviceCount, random: random)
            .identity(in: collaboration, encoding: encoding, random: random)
    }
    var client: RootgateClient?
    if arguments.isOn("register") {
        let service = try connect(try arguments.required("server"), arguments)
        if arguments.isOn("participants") {
            let people = identities.map { NewParticipant(PersonIdentity(rootHash: $0.rootHash)) }
            for start in stride(from: 0, to: people.count, by: Limits.participantsPerRequestMax) {
                let end = min(people.count, start + Limits.participantsPerRequestMax)
                _ = try await service.send(AddParticipants(Array(people[start..<end]), to: collaboration))
            }
        } else {
            try await service.createCollaboration(collaboration)
            try await service.addAll(identities.map(\.rootHash), to: collaboration)
        }
        client = service
    }
    if let path = arguments.text("roots-out") {
        let text = identities.map { $0.rootHash.description + "\n" }.joined()
        try Data(text.utf8).write(to: URL(fileURLWithPath: path))
    }
    for identity in identities {
        for device in identity.keys.indices {
            let data = try await client?.challenges(1).challenges.first ?? random.bytes(32)
            let proof = try identity.proof(ofDevice: device, signing: data, format: format)
            printNow(
                try json([
                    "publicKey": Data(proof.publicKey).base64EncodedString(),
                    "publicKeyIndex": proof.publicKeyIndex,
                    "inclusionHashes": proof.inclusionHashes.map { Data($0.bytes).base64EncodedString() },
                    "signature": Data(proof.signature).base64EncodedString(),
                    "signatureFormat": proof.signatureFormat.name,
                    "data": Data(proof.data).base64EncodedString(),
                    "rootHash": identity.rootHash.description,
                ]))
        }
    }
    return .success
}
