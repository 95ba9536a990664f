// swift-tools-version: 6.2
import PackageDescription

// The manifest is the map: system modules first, then the layers from the
// bottom up. A target may import only targets above it in this file.

let swift: [SwiftSetting] = [
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("ExistentialAny"),
    .enableExperimentalFeature("Lifetimes"),
]

/// Whether the tests are built with AddressSanitizer. That takes time, so what they test and use is optimized in debug,
/// too.
let isSanitized = Context.environment["ROOTGATE_TEST_SANITIZED"] == "address"
let optimized: [SwiftSetting] = swift + (isSanitized ? [.unsafeFlags(["-O"], .when(configuration: .debug))] : [])

/// libFuzzer's archive, when that build is also the one that deploy/fuzz runs. Then the layers and the programs count
/// how often each place of their code is reached.
let libFuzzer = isSanitized ? Context.environment["ROOTGATE_TEST_LIBFUZZER"] : nil
let counting: [SwiftSetting] =
    libFuzzer == nil ? [] : [.unsafeFlags(["-Xfrontend", "-sanitize=address,fuzzer"], .when(configuration: .debug))]
let tested = optimized + counting

/// Kernels check their bounds in debug builds, and in every build of the tests with sanitizers.
let checksOfKernels = CSetting.define("KERNEL_CHECKS", isSanitized ? nil : .when(configuration: .debug))

func layer(_ name: String, _ dependencies: [Target.Dependency] = []) -> Target {
    .target(name: name, dependencies: dependencies, swiftSettings: tested)
}

func program(_ name: String, path: String? = nil, _ dependencies: [Target.Dependency]) -> Target {
    // Not optimized with sanitizers: the compiler of Swift 6.3.1 crashes.
    .executableTarget(name: name, dependencies: dependencies, path: path, swiftSettings: swift + counting)
}

func tests(
    of name: String, _ dependencies: [Target.Dependency] = [], settings: [SwiftSetting] = swift
) -> Target {
    .testTarget(
        name: "\(name)Tests", dependencies: [.target(name: name)] + dependencies + ["TestSupport"],
        swiftSettings: settings)
}

/// How the bundle of the tests is linked with libFuzzer: its entry is that of deploy/fuzz, which goes on to the tests,
/// and it keeps the counters until a subject is chosen.
let fuzzerLinks: [LinkerSetting]? = libFuzzer.map { archive in
    let wrapped = ["main", "__sanitizer_cov_8bit_counters_init", "__sanitizer_cov_pcs_init"]
    let flags = [archive, "-lstdc++"] + wrapped.map { "--wrap=\($0)" }
    return [.unsafeFlags(flags.flatMap { ["-Xlinker", $0] }, .when(configuration: .debug))]
}

let package = Package(
    name: "rootgate",
    platforms: [.macOS(.v26)],
    products: [
        .executable(name: "rootgate", targets: ["rootgate"]),
        .executable(name: "rootgate-bench", targets: ["rootgate-bench"]),
        .library(name: "RootgateClient", targets: ["RootgateClient"]),
    ],
    targets: [
        // System libraries.
        .systemLibrary(
            name: "COpenSSL", pkgConfig: "libcrypto",
            providers: [.apt(["libssl-dev"]), .brew(["openssl@3"])]),
        .systemLibrary(
            name: "CLibSSL", pkgConfig: "libssl",
            providers: [.apt(["libssl-dev"]), .brew(["openssl@3"])]),
        .systemLibrary(
            name: "CLMDB", pkgConfig: "lmdb",
            providers: [.apt(["liblmdb-dev"]), .brew(["lmdb"])]),
        .systemLibrary(name: "CLinux"),

        // Kernels in C, most of them for vector units. They are compiled with optimization in debug builds too.
        .target(
            name: "CKernels",
            cSettings: [
                .unsafeFlags(["-O2"], .when(configuration: .debug)),
                checksOfKernels,
            ]),

        // Calls of LMDB that come back after a fault.
        .target(name: "CStorageGuard", dependencies: ["CLMDB"]),

        // The gate, bottom-up.
        layer("Core"),
        layer("Platform", ["CLinux"]),
        layer("Kernels", ["CKernels", "Core"]),
        layer("Hashing", ["COpenSSL", "CKernels", "Core", "Platform", "Kernels"]),
        layer("Secrets", ["Core", "Platform", "Hashing"]),
        layer("Audit", ["Core", "Platform", "Hashing"]),
        layer("Merkle", ["Core", "Hashing"]),
        layer("Signatures", ["COpenSSL", "CKernels", "Core", "Kernels"]),
        layer("Identity", ["COpenSSL", "Core", "Hashing", "Merkle", "Signatures"]),
        layer("RootSets", ["CLMDB", "CStorageGuard", "Core", "Platform", "Hashing"]),
        layer("Verification", ["Core", "Hashing", "Merkle", "Signatures", "RootSets"]),
        layer("Wire", ["Core"]),
        layer("Transport", ["Core", "Platform"]),
        layer("TLS", ["CLibSSL", "Core", "Platform", "Transport"]),
        layer("Etcd", ["Core", "Platform", "Hashing", "Transport", "TLS"]),
        layer(
            "Cluster",
            ["Core", "Platform", "Hashing", "RootSets", "Wire", "Transport", "TLS", "Etcd", "RootgateClient"]),
        layer("Principals", ["Core", "Hashing", "Wire"]),
        layer("Collaboration", ["Core", "Principals"]),
        layer(
            "Server",
            [
                "Core", "Platform", "Kernels", "Hashing", "Secrets", "Audit", "Merkle", "Signatures", "RootSets",
                "Verification", "Wire", "Transport", "TLS", "Etcd", "Cluster", "Principals", "Collaboration",
            ]),

        // What talks to it.
        layer("RootgateClient", ["Core", "Platform", "Wire", "Transport", "TLS", "Principals", "Collaboration"]),
        layer(
            "LoadHarness",
            [
                "COpenSSL", "Core", "Platform", "Hashing", "Signatures", "Identity", "Wire", "Transport",
                "TLS", "Principals", "RootgateClient",
            ]),
        program(
            "rootgate",
            [
                "Core", "Platform", "Kernels", "Hashing", "Secrets", "Audit", "Identity", "Signatures",
                "Verification", "Transport", "TLS", "Etcd", "Cluster", "Principals", "Server", "RootgateClient",
                "LoadHarness",
            ]),
        program(
            "rootgate-bench", path: "Benchmarks/rootgate-bench",
            [
                "COpenSSL", "CLMDB", "Core", "Platform", "Kernels", "Hashing", "Secrets", "Merkle", "Signatures",
                "Audit", "Identity", "RootSets", "Verification", "Wire", "Transport", "TLS", "Etcd",
                "EtcdTestSupport", "Cluster", "Principals", "Collaboration", "Server", "RootgateClient", "LoadHarness",
            ]),

        // For the tests of the kernels: what the kernels keep in private headers, the P-256 kernel in plain C for
        // every processor, the same kernel over small curves, and kernels that are broken on purpose.
        .target(
            name: "KernelInternals", dependencies: ["CKernels"], path: "Tests/KernelInternals",
            cSettings: [
                .unsafeFlags(["-O2"], .when(configuration: .debug)),
                checksOfKernels,
            ]),
        .target(
            name: "KernelEmulation", dependencies: ["CKernels", "KernelInternals"], path: "Tests/KernelEmulation",
            cSettings: [
                .unsafeFlags(["-O2"], .when(configuration: .debug)),
                checksOfKernels,
            ]),
        .target(
            name: "ToyCurve", dependencies: ["CKernels", "KernelInternals"], path: "Tests/ToyCurve",
            cSettings: [
                .unsafeFlags(["-O2"], .when(configuration: .debug)),
                checksOfKernels,
            ]),
        .target(
            name: "KernelMutants", dependencies: ["CKernels"], path: "Tests/KernelMutants",
            cSettings: [.unsafeFlags(["-O2"], .when(configuration: .debug))]),

        // Proofs of the bounds that the kernels rely on, for all inputs: the kernels' sources with lanes that stand for
        // all numbers.
        .target(
            name: "KernelProofs", dependencies: ["CKernels"], path: "Tests/KernelProofs",
            cSettings: [.unsafeFlags(["-O2"], .when(configuration: .debug))]),

        // Enters a sandbox and attempts what it should refuse, for the tests of Platform.
        .executableTarget(
            name: "SandboxProbe", dependencies: ["CLinux", "Platform"], path: "Tests/SandboxProbe", swiftSettings: swift
        ),

        // Oracles and generators that the tests share, and the tests, one target for each layer.
        .target(name: "TestProcess", dependencies: ["COpenSSL"], path: "Tests/TestProcess"),
        .target(
            name: "TestSupport", dependencies: ["COpenSSL", "Core", "Platform", "TestProcess", "Transport"],
            path: "Tests/TestSupport", swiftSettings: optimized),
        .target(
            name: "ServiceTestSupport", dependencies: ["Core", "Identity", "RootgateClient", "Server", "TestSupport"],
            path: "Tests/ServiceTestSupport", swiftSettings: optimized),
        // Members of etcd for tests, and for the benchmarks of clusters.
        .target(
            name: "EtcdTestSupport", dependencies: ["Core", "Etcd", "TLS", "TestSupport", "Transport"],
            path: "Tests/EtcdTestSupport", swiftSettings: optimized),
        // Stands between LMDB and the system. What a disk may hold after a power cut is made from what it has recorded.
        .target(name: "FailingDisk", path: "Tests/FailingDisk"),
        .target(name: "DiskImages", dependencies: ["FailingDisk"], path: "Tests/DiskImages", swiftSettings: optimized),
        // Uses a storage that is damaged, or whose disk fails, in a process of its own.
        .executableTarget(
            name: "StorageProbe", dependencies: ["FailingDisk", "Core", "RootSets", "TestSupport"],
            path: "Tests/StorageProbe", swiftSettings: optimized),
        // Damages copies of a storage and compares all answers, for the tests of RootSets.
        .executableTarget(
            name: "DamageTrials", dependencies: ["Core", "RootSets", "TestSupport"], path: "Tests/DamageTrials",
            swiftSettings: optimized),
        // Cuts the power of a storage in use, and compares what is left with a model, for the tests of RootSets.
        .executableTarget(
            name: "PowerCuts", dependencies: ["FailingDisk", "DiskImages", "Core", "RootSets", "TestSupport"],
            path: "Tests/PowerCuts", swiftSettings: optimized),
        // The whole service in a simulated world, for its tests and for long runs.
        .executableTarget(
            name: "Simulation",
            dependencies: [
                "FailingDisk", "DiskImages", "Core", "Hashing", "Identity", "Platform", "RootSets", "Server",
                "Signatures", "Transport",
            ],
            path: "Tests/Simulation", swiftSettings: optimized),
        tests(
            of: "CKernels",
            [
                "COpenSSL", "Core", "Hashing", "Signatures", "KernelInternals", "KernelEmulation", "ToyCurve",
                "KernelMutants", "KernelProofs",
            ],
            settings: optimized),
        tests(of: "Core"),
        tests(of: "Platform", ["SandboxProbe"]),
        tests(of: "Hashing", ["CKernels", "Core", "Kernels", "Platform"]),
        tests(of: "Secrets", ["Core", "Hashing", "Platform"]),
        tests(of: "Audit", ["Core", "Hashing", "Platform"]),
        tests(of: "Merkle", ["Core", "Hashing"]),
        tests(
            of: "Signatures", ["COpenSSL", "CKernels", "Core", "Hashing", "KernelEmulation", "Kernels"],
            settings: optimized),
        tests(of: "Kernels", ["CKernels"]),
        tests(of: "Identity", ["Core", "Hashing", "Merkle", "Signatures"]),
        tests(of: "CStorageGuard", ["CLMDB"]),
        tests(of: "RootSets", ["CLMDB", "Core", "Platform", "DamageTrials", "PowerCuts", "StorageProbe"]),
        tests(of: "Verification", ["Core", "Hashing", "Identity", "Merkle", "RootSets", "Signatures"]),
        tests(of: "Wire", ["Core"]),
        tests(of: "Principals", ["Core", "Hashing", "Wire"]),
        tests(of: "Collaboration", ["Core", "Hashing", "Principals"]),
        tests(of: "Transport", ["Core", "Platform"]),
        tests(of: "Etcd", ["Core", "EtcdTestSupport", "Hashing", "Identity", "TLS", "Transport"]),
        tests(of: "Cluster", ["Core", "Etcd", "EtcdTestSupport", "Hashing", "RootSets", "Transport", "Wire"]),
        tests(of: "TLS", ["CLibSSL", "Core", "Identity", "Platform", "Transport"]),
        tests(
            of: "Server",
            [
                "Cluster", "Collaboration", "Core", "Etcd", "EtcdTestSupport", "Hashing", "Identity", "Platform",
                "Principals", "RootSets", "RootgateClient", "Secrets", "ServiceTestSupport", "Signatures", "TLS",
                "Transport", "Verification", "Wire",
            ]),
        tests(
            of: "RootgateClient",
            [
                "Audit", "Collaboration", "Core", "Hashing", "Identity", "Principals", "Secrets", "Server",
                "ServiceTestSupport", "TLS", "Transport", "Wire",
            ]),
        tests(
            of: "LoadHarness", ["Core", "Identity", "RootgateClient", "Server", "ServiceTestSupport", "Transport"]),
        tests(of: "rootgate-bench", ["Core", "Kernels"]),
        tests(
            of: "rootgate",
            [
                "Audit", "Core", "EtcdTestSupport", "Hashing", "Identity", "Kernels", "Principals", "Secrets", "Server",
                "ServiceTestSupport", "Transport",
            ]),

        // Readers of bytes from outside, with the properties that hold for all bytes.
        .testTarget(
            name: "FuzzingTests",
            dependencies: [
                "COpenSSL", "Audit", "Cluster", "Collaboration", "Core", "Etcd", "Hashing", "Identity", "Kernels",
                "Principals", "RootSets", "RootgateClient", "Secrets", "Server", "Signatures", "TLS", "TestSupport",
                "Transport", "Verification", "Wire", "rootgate",
            ],
            exclude: ["Corpora"] + (libFuzzer == nil ? ["FuzzCoverage.swift", "FuzzProgram.swift"] : []),
            swiftSettings: tested, linkerSettings: fuzzerLinks),
        tests(of: "Simulation"),

        // The rules of style, over every file that git tracks.
        .testTarget(name: "TidyTests", dependencies: ["TestSupport"], swiftSettings: swift),
    ],
    swiftLanguageModes: [.v6]
)
