/// Every maximum and minimum for what a peer, a file or an operator may ask for. Names end in their unit. `CoreTests`
/// asserts the relations that other code relies on.
public enum Limits {
    // MARK: Proofs

    /// Sibling digests in one inclusion proof: a tree of at most 2^32 leaves.
    public static let inclusionHashesMax = 32
    /// Bytes of the signed `data` of one proof.
    public static let signedDataBytesMax = 4096
    /// Bytes that a device's nonce has at least, under the device-nonce policy.
    public static let deviceNonceBytesMin = 16
    /// Bytes of a public key in its longest accepted encoding (SubjectPublicKeyInfo, uncompressed point).
    public static let publicKeyBytesMax = 91
    /// Bytes of a P-256 signature in its longest accepted encoding (DER, both integers padded).
    public static let signatureBytesMax = 72
    /// Leaves of the largest Merkle tree that the tree builder makes.
    public static let treeLeavesMax = 1 << 20

    // MARK: Identifiers

    /// UTF-8 bytes of a collaboration's identifier; at least one.
    public static let collaborationBytesMax = 128
    /// Bytes of a mutation's identifier, exactly.
    public static let mutationIdentifierBytes = 16
    /// Seconds that a device nonce is remembered, at least and at most.
    public static let nonceWindowSecondsMin: UInt32 = 1
    public static let nonceWindowSecondsMax: UInt32 = 7 * 24 * 3600

    // MARK: Frames and requests

    /// Bytes of a frame's header, exactly.
    public static let frameHeaderBytes = 16
    /// Bytes of a frame's body, in either direction.
    public static let frameBodyBytesMax = 2 << 20
    /// Proofs in one verify or inclusion-only request.
    public static let proofsPerRequestMax = 4096
    /// Different collaborations named by one verify or inclusion-only request.
    public static let collaborationsPerRequestMax = 4096
    /// Roots in one add, remove or test request.
    public static let rootsPerRequestMax = 32_768
    /// Root hashes of one collaboration that have the same first eight bytes. Digests hardly ever do.
    public static let rootsPerPrefixMax = 32
    /// Roots in one page of a listing.
    public static let rootsPerPageMax = 4096
    /// Collaborations in one page of a listing.
    public static let collaborationsPerPageMax = 1024
    /// Records in one page of the change log, and the bytes after which a page ends early.
    public static let changesPerPageMax = 1024
    public static let changesPageBytesMax = 512 << 10
    /// Challenges issued by one request.
    public static let challengesPerRequestMax = 4096
    /// Bytes that a ping carries. The answer returns them.
    public static let pingBytesMax = 64
    /// UTF-8 bytes of an error answer's text.
    public static let errorTextBytesMax = 512
    /// Proofs and bytes of a request into which a client packs single proofs.
    public static let packedProofsMax = 256
    public static let packedBytesMax = 256 << 10

    // MARK: Connections

    /// Requests of one connection that may wait for their answers. At this number the service stops reading the
    /// connection.
    public static let requestsInFlightPerConnectionMax = 128
    /// Bytes of answers that may wait to be sent on one connection. Above it the service stops reading the connection.
    public static let unsentBytesPerConnectionMax = 256 << 10
    /// Bytes of answers that a connection gathers. When there are more, they leave although somebody still gathers.
    public static let gatheredBytesMax = 16 << 10
    /// Bytes that an event loop receives at once. Its buffer for them is used by all of its connections in turn.
    public static let receiveBufferBytes = 256 << 10
    /// Bytes that a loop receives from all ready connections before it looks which ones are ready, as long as each gets
    /// the least that one may receive then. One connection gets at most the most.
    public static let turnBytesMax = 1 << 20
    public static let turnBytesPerConnectionMin = 4 << 10
    public static let turnBytesPerConnectionMax = 1 << 20
    /// What a connection may receive in its turn whose queries wait for changes: about eight such queries.
    public static let followingTurnBytes = 1 << 10
    /// Ready sockets that an event loop serves at once, if that takes no longer than a turn. Otherwise the kinds of
    /// work take turns, and the peer goes first that was served for the least time. So many microseconds pass before
    /// the loop looks which others are ready. In between it does other work for so long.
    public static let readySocketsAtOnce = 32
    public static let readyTurnMicroseconds: Int64 = 200
    public static let workTurnMicroseconds: Int64 = 100
    /// As `readyTurnMicroseconds`, behind the turn of a connection whose queries wait for changes.
    public static let followingTurnMicroseconds: Int64 = 100
    /// A connection's turn of so many microseconds or more counts without the time for which the loop had no processor,
    /// and as so many at least.
    public static let servedMicrosecondsUnchecked: Int64 = 50
    /// Microseconds for which an event loop or the writer keeps its processor when it always has work, and the time
    /// slice that it asks the system for. The slice is what a thread gives away when it ends its turn.
    public static let processorTurnMicroseconds: Int64 = 250
    public static let timeSliceMicroseconds: Int64 = 100
    /// Bytes of the longest frame that is always copied for its request. A longer frame that has a buffer of its own
    /// stays in it.
    public static let copiedFrameBytesMax = 16 << 10
    /// Bytes of an unfinished frame that a connection keeps without room for more. For a longer one it has a buffer
    /// with room for as many bytes again, or for the rest of the frame.
    public static let unfinishedFrameBytesMax = 16 << 10
    /// Bytes that the unfinished frames of a client's connections may take together.
    public static let clientReceiveBytesMax = 64 << 20
    /// Milliseconds in which a peer has to take so many bytes of its answers, or the rest of them, while the service
    /// shuts down.
    public static let drainStallMilliseconds: UInt64 = 1000
    public static let drainBytesMin = 256 << 10
    /// Places that only connections of this machine get, and the part of all places that they are at most.
    public static let localConnectionsKept = 16
    public static let localConnectionsPart = 8
    /// Connections that were refused or had to go, and still get the error that says so. Others are closed without it.
    /// Those that had to go may be as many as there are places, if there are descriptors for them. With few descriptors
    /// there are fewer (`ConnectionBounds`).
    public static let leavingConnectionsMax = 256
    /// Connections that are looked at to find the one that has been idle for the longest time.
    public static let idleConnectionsCompared = 64
    /// Connections that the system keeps for a listener until the service accepts them.
    public static let listenBacklog = 1024
    /// Bytes of the path of a local socket. The system's address has one more, for the zero at its end.
    #if os(Linux)
    public static let localSocketPathBytesMax = 107
    #else
    public static let localSocketPathBytesMax = 103
    #endif
    /// Milliseconds that a start waits for another one that is about to listen in the same folder.
    public static let socketFolderMillisecondsMax = 2000

    // MARK: Memory of requests

    /// Bytes of memory for requests that an operator has to allow.
    public static let requestMemoryBytesMin = 8 << 20
    /// The reserve in the memory for requests: one part in so many, and the least bytes.
    public static let urgentMemoryPart = 4
    public static let urgentMemoryBytesMin = 3 << 20
    /// Bytes that the longest request and its longest answer take. A connection may always hold them, if its peer may.
    public static let memoryPerRequestMax = 2 * (frameHeaderBytes + frameBodyBytesMax) + requestOverheadBytes
    /// Bytes of the reserve that one connection may always hold, if its peer may: those of the longest removal.
    public static let urgentMemoryPerRequestMax =
        frameHeaderBytes + mutationIdentifierBytes + collaborationBytesMax + 8 + 32 * rootsPerRequestMax
        + requestOverheadBytes
    /// Bytes that a principal may hold beyond its limit for a removal: those of the longest one and its frame, which
    /// is still there when the request is read from it.
    public static let removalBytesReserve = 2 * urgentMemoryPerRequestMax
    /// The part of its peer's share that a connection may hold.
    public static let memoryPartPerConnection = 4
    /// Bytes of a request besides its body and its answer. An error answer fits into them.
    public static let requestOverheadBytes = 1 << 10
    /// Bytes of an unread answer besides itself.
    public static let unsentOverheadBytes = 64
    /// Bytes of an unfinished frame that are not counted: the header and the name of a request fit into them.
    public static let uncountedFrameBytesMax = 128
    /// Bytes of unread answers of a connection up to which it gets `busy` although there is no memory for that either.
    public static let uncountedAnswerBytesMax = 1 << 10
    /// Bytes of the longest page of the change log: a record may follow when the page is nearly full.
    public static let changesAnswerBytesMax = changesPageBytesMax + editBytesMax + (64 << 10)
    /// Bytes of the answer to the request for statistics.
    public static let statisticsAnswerBytesMax = 16 << 10
    /// Bytes that are reserved for the answer to a query of the collaboration layer while it is decided, and for the
    /// answer to a request that changes something.
    public static let layerAnswerBytes = 1 << 20
    public static let layerReceiptBytes = 16 << 10

    // MARK: TLS

    /// Handshakes that are not finished, on all connections. When there are more, the oldest one of the peer with the
    /// most is given up. As many accepted connections may wait for the beginning of theirs. With few descriptors there
    /// are fewer of both.
    public static let handshakesUnfinishedMax = 1024
    /// Milliseconds from the acceptance of a connection to the end of its handshake.
    public static let handshakeMillisecondsMax: UInt64 = 10_000
    /// Records without data that a TLS connection takes from its peer behind the handshake, and bytes of data for which
    /// it takes one more, up to that number.
    public static let recordsWithoutDataMax = 32
    public static let bytesPerRecordWithoutData = 64 << 10
    /// Connections whose handshake begins before the handshakes that are under way get their turn.
    public static let handshakesBegunPerTurn = 16
    /// Bytes of a peer's certificates in one handshake, and authorities between its certificate and a trusted one.
    public static let certificateListBytesMax = 32 << 10
    public static let certificateChainMax = 4
    /// Seconds in which a session can be resumed, and sessions that a client keeps for that.
    public static let sessionSecondsMax = 7200
    public static let sessionsKeptMax = 16
    /// Milliseconds between two looks at whether the files of certificates have changed.
    public static let certificateCheckMilliseconds: UInt64 = 500

    // MARK: Log

    /// Lines that one place in the code writes to the log at once, and in each second from then on.
    package static let logLinesAtOnce = 20
    package static let logLinesPerSecond = 2
    /// Milliseconds between two looks for lines that were left out and not told.
    package static let logTellMilliseconds = 10_000

    // MARK: HTTP

    /// Seconds of a lease in etcd. What says more is no lease of a service.
    public static let etcdLeaseSecondsMax: Int64 = 1 << 31
    /// Bytes of the head of an answer of etcd, and of its body.
    public static let etcdHeadBytesMax = 16 << 10
    public static let etcdAnswerBytesMax = 8 << 20
    /// Bytes of an entry of a log in etcd, and how many entries are read at once. The least fit into one answer as
    /// base64, however long they are; while entries are short, more are read.
    public static let etcdEntryBytesMax = segmentBytesMax
    public static let etcdEntriesPerReadMin = 5
    public static let etcdEntriesPerReadMax = 256
    /// Milliseconds for connecting to a member of etcd, for the first attempt to append and for a later one, and for
    /// asking a member how it is.
    public static let etcdConnectMilliseconds = 1000
    public static let etcdAppendMilliseconds: UInt64 = 500
    public static let etcdAppendMillisecondsMax: UInt64 = 1000
    public static let etcdSurveyMilliseconds: UInt64 = 200

    /// Bytes of a challenge, and which of them are the number of the service that has issued it (see `ChallengeBook`).
    public static let challengeBytes = 48
    public static let challengeIssuerBytes = 16..<24
    /// The shortest time without news of a cluster's log that an operator can choose: some looks at it.
    public static let stalenessMillisecondsMin = 300
    /// Milliseconds for a gate's question to the log of its cluster, and for appending to it.
    public static let clusterReadMilliseconds: UInt64 = 1000
    public static let clusterAppendMilliseconds: UInt64 = 5000
    /// Requests that wait for a change of another service of the cluster; how long one waits at most, and how often it
    /// is looked whose time is over, in milliseconds.
    public static let laggingRequestsMax = 4096
    public static let laggingMilliseconds: UInt64 = 1000
    public static let laggingLookMilliseconds = 50
    /// Seconds of the shortest lease of a service's key, milliseconds by which it is taken for shorter, and
    /// milliseconds between two of its renewals.
    public static let clusterLeaseSecondsMin: UInt64 = 5
    public static let clusterLeaseMarginMilliseconds: UInt64 = 500
    public static let clusterKeepAliveMilliseconds: UInt64 = 1000
    /// Milliseconds between two turns of the thread that keeps the key; the same while somebody waits for others; and
    /// between two looks at what the log need not keep.
    public static let clusterPresenceMilliseconds: UInt64 = 250
    public static let clusterLookMilliseconds: UInt64 = 10
    public static let clusterTrimMilliseconds: UInt64 = 2000
    /// How many times as much of a cluster's log as usual is kept for a service that stays behind.
    public static let clusterLateFactor = 4
    /// The same for a snapshot that a service has got, or gets, of another one.
    public static let clusterSnapshotFactor = 16
    /// Milliseconds without a question of the writer after which another thread asks the log for news.
    public static let clusterHeartbeatMilliseconds: UInt64 = 250
    /// Milliseconds for which a new service waits at its start until etcd answers.
    public static let clusterFoundingMilliseconds: UInt64 = 60_000
    /// How long a start may go on after a signal that is to end the service.
    public static let startGraceMilliseconds = 1000
    /// Services of a cluster, and bytes of what one tells of itself.
    public static let gatesMax = 256
    public static let gateRecordBytesMax = 4096
    /// Generations of the secret in it, bytes of the name of one, and bytes of the address.
    public static let gateSecretsMax = 3
    public static let gateSecretNameBytesMax = 32
    public static let gateAddressBytesMax = 300
    /// Services that a line of the log names at most.
    public static let gatesNamedMax = 8
    /// Requests of a service that wait until the others have applied something.
    public static let everywhereWaitersMax = 4096
    /// Milliseconds that such a request waits at most: longer than it takes until a service that was stopped answers
    /// nothing any more, unless the operator lets services be stale for long.
    public static let everywhereMilliseconds: UInt64 = 8000
    /// Requests of a service for pieces of a snapshot that wait, and bytes of a piece.
    public static let snapshotReadersMax = 16
    public static let snapshotPieceBytes = 1 << 20
    /// For how many milliseconds after somebody has read of a snapshot it is kept, besides one for so many bytes that
    /// have to be restored. Until then everybody gets it who asks for a new one.
    public static let snapshotIdleMilliseconds: UInt64 = 60_000
    public static let snapshotRestoreBytesPerMillisecond: UInt64 = 8192
    /// Milliseconds after which a service says that it is still making a snapshot, between two questions for it, and
    /// for which it is asked again.
    public static let snapshotWaitMilliseconds: UInt64 = 20_000
    public static let snapshotAskMilliseconds: UInt64 = 1000
    public static let snapshotMakingMilliseconds: UInt64 = 3_600_000
    /// Seconds that a service may take for its hello and for an answer about a snapshot, and times that a new one is
    /// asked for.
    public static let snapshotHelloSeconds = 5
    public static let snapshotSeconds = 60
    public static let snapshotAttemptsMax = 3
    /// For how many milliseconds a service tries at its start to get a snapshot of any other one. Longer than a fifth
    /// of the time in which a supervisor allows five starts that fail (`StartLimitIntervalSec` of the unit).
    public static let snapshotJoinMilliseconds: UInt64 = 60_000
    /// How long a start goes on at least after a message to the supervisor that it does, in seconds.
    public static let startExtensionSeconds: UInt64 = 180
    /// Milliseconds before another watch is begun when one has ended, and of silence after which one is given up.
    public static let clusterWatchPauseMilliseconds: UInt64 = 100
    public static let clusterSilenceMilliseconds: UInt64 = 5000

    /// Connections to a server of pages at once, and those that are being told that there are too many. Peers share
    /// both. With few descriptors there are fewer.
    public static let visitorsMax = 64
    /// Bytes of a request's head, and milliseconds in which it has to arrive.
    public static let requestHeadBytesMax = 8 << 10
    public static let requestHeadMilliseconds: UInt64 = 5000
    /// Bytes of memory for the heads and the pages of all connections to one server of pages.
    public static let visitorsBytesMax = 16 << 20
    /// Bytes of a form that a page of the console takes: a proof at all its limits has under 16 KiB, and a browser
    /// writes some of its characters as three bytes.
    public static let consoleFormBytesMax = 64 << 10
    /// Milliseconds between two moments of the console's history, and the moments that are kept: ten minutes. A plot
    /// shows a minute at least.
    public static let historyMilliseconds = 2000
    public static let historyMoments = 300
    public static let historyMomentsShownMin = 30
    /// Refused proofs that the service keeps when an operator asks for it, and bytes of memory that one takes at most.
    public static let sampledProofsMax = 1024
    public static let sampledProofBytesMax = 8 << 10
    /// Rows of a table of the console, and pages of a listing that are read for one of them.
    public static let consoleRowsMax = 100
    public static let consolePagesRead = 16
    /// Accounts whose attribution of a link a page of the console shows.
    public static let consoleAttributionsMax = 8
    /// Names and notices in the console's drawing of a popover.
    public static let consolePopoverNamesMax = 5
    public static let consolePopoverNoticesMax = 3
    /// Bytes of a page that a probe reads.
    public static let operatorPageBytesMax = 64 << 10
    /// Milliseconds between two looks at how the service is: each worker is asked for a sign of life, and verifies a
    /// proof of the service's own.
    public static let watchMilliseconds = 1000
    /// Looks in each period of a supervisor's watchdog, and the fewest and most milliseconds between two of them.
    public static let watchesPerWatchdog: UInt64 = 4
    public static let watchMillisecondsMin = 10
    public static let watchMillisecondsMax = 10_000
    /// Sockets that a service inherits from its supervisor.
    public static let inheritedSocketsMax = 64
    /// Milliseconds that a message to the supervisor waits, and bytes of one line of it.
    public static let supervisorMilliseconds = 1000
    public static let supervisorLineBytesMax = 512
    /// Milliseconds after which a worker without a sign of life makes the service unready, and after which only a
    /// restart helps.
    public static let workerSilentMilliseconds: UInt64 = 5000
    public static let workerDeadMilliseconds: UInt64 = 60_000
    /// Milliseconds after the last proof of its own, or after the beginning of a commit, from which on the service is
    /// unready.
    public static let ownProofMilliseconds: UInt64 = 5000
    public static let commitSlowMilliseconds: UInt64 = 10_000
    /// Bytes of the file of `--trace`, at most.
    public static let traceBytesMax = 1 << 30
    /// The slowest requests that are kept of each minute, and the minutes.
    public static let slowestPerMinute = 16
    public static let slowestMinutes = 5
    /// Seconds before the end of its certificate from which on the service is unready.
    public static let certificateLeftSeconds = 3600

    // MARK: Principals

    /// Principals of a service, and those in one page of a listing.
    public static let principalsMax = 1024
    public static let principalsPerPageMax = 256
    /// ASCII characters of a principal's name.
    public static let principalNameBytesMax = 128
    /// Keys of one principal that are valid at once: one, and its successor while keys are rotated.
    public static let keysPerPrincipalMax = 2
    /// Names of certificates that identify one principal, and ASCII characters of each. A SPIFFE identity has at most
    /// 2,048.
    public static let certificateNamesMax = 8
    public static let certificateNameBytesMax = 2048
    /// Roles of one principal, counted once for each way in which a role is limited, and prefixes in all of them.
    public static let rolesPerPrincipalMax = 32
    public static let prefixesPerPrincipalMax = 64
    /// Characters of a key's text, exactly.
    public static let keyTextBytes = 64
    /// Keys that one connection may present, right ones included. A wrong key ends the connection.
    public static let keysPerConnectionMax = 8
    /// Milliseconds after which the last use of a key or a certificate is stored again.
    public static let useStoredMilliseconds: UInt64 = 3_600_000
    /// Highest limit of each kind that a principal may have.
    public static let principalLimitMax = 1 << 40
    /// Seconds whose proofs or mutations a principal may send at once. A larger request leaves a debt.
    public static let burstSeconds = 1
    /// Grants that are checked in no more than the time of a proof: a limit of proofs allows so many times as many.
    public static let grantsPerProof = 8
    /// Removals that a principal may make beyond its limit of mutations: in a second, and at once.
    public static let removalsPerSecondReserve = 64
    public static let removalsAtOnceReserve = 256
    /// Removals in flight that a principal may have beyond its limit of requests.
    public static let removalsInFlightReserve = 4
    /// Milliseconds after which a request that is above a limit other than a rate is to be sent again.
    public static let occupiedMilliseconds: UInt64 = 100
    /// Requests above a limit of its principal that a connection may send before it is not read for a while.
    public static let limitRefusalsPerTurn = 32
    /// Milliseconds between two such turns of a principal's connections, and the longest that one is not read.
    public static let limitTurnMilliseconds: UInt64 = 5
    public static let limitPauseMillisecondsMax: UInt64 = 500
    /// Wrong keys that one address may present at once, and in a second from then on.
    public static let wrongKeysAtOnce = 16
    public static let wrongKeysPerSecond = 1
    /// Addresses whose wrong keys are counted. The one that was counted first is forgotten for another one.
    public static let wrongKeyAddressesMax = 4096
    /// Pages of a list that a worker reads for a principal that sees only a part of it, before other work gets its
    /// turn.
    public static let filteredPagesPerTurn = 4

    // MARK: Verifier

    /// Proofs that a worker verifies in one pass over the stages.
    public static let proofsPerPassMax = 256
    /// Proofs that a worker takes at once if so many wait. Another worker is woken only for what remains, because
    /// waking it for fewer proofs costs more than it gains.
    public static let proofsPerPortionMax = 256
    /// The same while peers take turns: while work of several waits, and for so many proofs, tasks and items of
    /// challenges behind a turn of another peer. A portion of 64 proofs takes a quarter of the time, and not much
    /// longer for each proof.
    public static let proofsPerSharedPortionMax = 64
    public static let sharedItems = 32 * proofsPerSharedPortionMax
    /// Microseconds that the signatures of such a portion may take, by new keys and by the times that were measured at
    /// the start. Those by known keys are quicker, and those that take as long as one always fit. Where only libcrypto
    /// verifies, nothing is measured: a portion has so many proofs.
    public static let sharedPortionMicroseconds = 250
    public static let libcryptoProofsPerSharedPortion = 4
    /// Waiting proofs for which a further worker is woken. For fewer, waking costs more than it gains.
    public static let proofsPerPortionMin = 4
    /// Proofs that a worker takes from one connection before it takes any from the next one.
    public static let proofsPerTurn = 32
    /// Challenges that a worker makes in no more than the time of a proof. So many count as one waiting proof.
    public static let challengesPerItem = 32
    /// Challenges that a worker makes for one connection before it takes work from the next one.
    public static let challengesPerTurn = proofsPerTurn * challengesPerItem

    /// A participant's share of the memory for spent challenges, and of that for nonces, is this part of what his
    /// collaboration may have of it.
    public static let sharesPerCollaboration = 4
    /// Expired nonces that are forgotten when a nonce is spent, at most, and when there would be no room for it.
    public static let noncesForgottenAtOnce = 8
    public static let noncesForgottenForRoom = 1024

    /// Peers whose turns the worker pool remembers while none of their work waits.
    public static let idleTurnsMax = 1024

    /// Outcomes that may wait for libcrypto to verify them again. Further samples are skipped.
    public static let crossChecksQueuedMax = 1024
    /// Keys that may wait for their tables. A further key gets its table after a later grant.
    public static let knownKeysQueuedMax = 1024

    // MARK: Storage

    /// Bytes of a record's key, including the sequence if it has one, and of its value.
    public static let recordKeyBytesMax = 500
    public static let recordValueBytesMax = 64 << 10
    /// Bytes by which an edit may make each record longer and still not count as an addition, so that the record of
    /// somebody who was removed may say who did it.
    public static let recordGrowthFreeBytesMax = 512
    /// Records, and ranges of removed records, in one edit.
    public static let recordsPerEditMax = 4096
    public static let rangesPerEditMax = 64
    /// Bytes of one edit. An edit of this size still fits into a frame with the other changes of its page.
    public static let editBytesMax = 1 << 20
    /// Mutations that are committed alone after several that found no room together, or after a removal that needed the
    /// list reserve.
    public static let commitsAlone = 64
    /// Mutations, and bytes of mutations, that one commit may carry.
    public static let mutationsPerCommitMax = 4096
    public static let mutationBytesPerCommitMax = 16 << 20
    /// Bytes of the mutations of one segment of a shared log, and of a segment: one with a single large mutation is
    /// longer.
    public static let mutationBytesPerSegmentMax = 256 << 10
    public static let segmentBytesMax = editBytesMax + (4 << 10)
    /// Segments of others that a storage lets go first before it gives up a group of mutations, and bytes of those that
    /// it has read and not applied yet.
    public static let segmentsLostMax = 256
    public static let segmentBytesUnappliedMax = 8 << 20
    /// Milliseconds between two looks at a shared log while nothing is appended.
    public static let sharedLookMilliseconds: UInt64 = 100
    /// Milliseconds before the next look at a shared log that can't be applied.
    public static let sharedPauseMilliseconds: UInt64 = 1000
    /// After readers have kept the list reserve from being used for a segment, and after a segment that found no room
    /// with it either: milliseconds until it is used again.
    public static let sharedReserveWaitMilliseconds: UInt64 = 2000
    public static let sharedReservePauseMilliseconds: UInt64 = 10_000
    /// Mutations, and bytes of mutations, from which on a commit with an urgent one takes no others.
    public static let mutationsBesideUrgentMax = 256
    public static let mutationBytesBesideUrgentMax = 256 << 10
    /// A commit with mutations of several peers takes them for so many times as long as the last commit was written, at
    /// least and at most for so many milliseconds. Later each peer adds one urgent mutation, if it has none in it.
    public static let sharedCommitWrites = 2
    public static let sharedCommitMillisecondsMin = 2
    public static let sharedCommitMillisecondsMax = 10
    /// Urgent mutations that the writer takes before one that is not urgent, when both wait.
    public static let urgentMutationsInRow = 8
    /// Descriptors that connections leave to files, and to what the system's libraries open for a moment.
    public static let descriptorsKept = 32
    /// Those that connections of operators from the same machine leave: they are answered also when clients have taken
    /// all others.
    public static let descriptorsKeptFromOperators = 16
    /// Descriptors that are none of connections, handshakes or event loops: files, listeners, and those that are kept.
    public static let descriptorsOfService = 64
    /// Descriptors that connections and handshakes of a service need at least.
    public static let descriptorsOfConnectionsMin = 26
    /// Descriptors that every service needs at least; one with many workers needs more.
    public static let descriptorsMin = 96
    /// How long a listener waits when the system could not make a connection.
    public static let acceptRetryMilliseconds: UInt64 = 20
    /// Heaps of the allocator when addresses are limited, and the bytes of addresses that it sets aside for each.
    public static let heapsWithLimitMax = 2
    public static let heapAddressBytes = 128 << 20
    /// Bytes of addresses of the program, of the libraries that it loads, and of what it allocates at its start.
    public static let programAddressBytes = 256 << 20
    /// Bytes of memory of the program with its tables, besides everything that has a limit of its own.
    public static let programBytes = 32 << 20
    /// Bytes that a device nonce takes.
    public static let nonceBytes = 60
    /// Threads besides the workers, with those of the system's libraries, and the bytes of a stack if there is no
    /// limit.
    public static let threadsBesideWorkersMax = 18
    public static let stackBytesMax = 8 << 20
    /// Bytes of the pages that a commit writes at most, as estimated, unless it has a single mutation. For each root
    /// hash of the longest request these are two leaves and a branch of 4 KiB. LMDB holds them in memory, also for the
    /// commits to come.
    public static let commitPageBytesMax = 3 * rootsPerRequestMax * 4096
    /// Seconds between two lines of the log that say that the storage or its disk is full.
    public static let fullnessSeconds: UInt64 = 60
    /// How many root hashes an addition has at most by which a storage counts as full, how many pages a storage has for
    /// each of them at least, and milliseconds between two looks whether there is room for it again.
    public static let usualAdditionRoots = 1024
    public static let pagesForUsualRoot = 16
    public static let fullnessLookMilliseconds: UInt64 = 1000
    /// Records of the change log that a commit removes so that other mutations find room: at first for a removal, which
    /// needs little room itself, and at most for an addition.
    public static let logRecordsTrimmedMin = 64
    public static let logRecordsTrimmedMax = 4096
    /// Bytes of a data file that a power cut may have left while it was made. A larger one is never made anew.
    public static let unfinishedDataFileBytesMax = 256 << 10
    /// A write that was cut short is a lack of space if the disk has fewer bytes than this left.
    public static let diskBytesFew = 1 << 20
    /// Bytes of one value in a backup, more than any stored value has. It bounds what a reader of a backup holds in
    /// memory.
    public static let backupValueBytesMax = 4 << 20
    /// One part in so many of the storage's free room is what a long reading, as of a backup, may keep from being used
    /// again. When it keeps half of that, a backup is no longer slowed down.
    public static let snapshotRoomPart = 4
    /// Milliseconds at least between two looks at what it keeps.
    public static let snapshotCostMilliseconds = 10
    /// Changes of a log that are applied in one commit while a backup is restored.
    public static let restoredChangesPerCommit = 256
    /// Seconds that the writer computes at most without finishing a mutation or writing a record. More is a fault: what
    /// it reads leads in a circle. Waiting for the disk does not count.
    public static let writerSecondsMax = 5
    /// Bytes of the data file for which the writer gets a second more. Finding a run of free pages took 5.5 s in
    /// a fragmented file of 6 GiB.
    public static let writerBytesPerSecond = 256 << 20
    /// From the end of a check of everything that is stored to the beginning of the next one: so many times as long as
    /// the check took, but so many seconds at least and at most.
    public static let checkIntervalChecks = 20
    public static let checkIntervalSecondsMin = 60
    public static let checkIntervalSecondsMax = 3600
    /// Microseconds for which a later check than that of the start works, and then rests, in turn: it takes a fifth of
    /// a processor at most.
    public static let checkWorkMicroseconds = 2000
    public static let checkRestMicroseconds = 8000
    /// Milliseconds from the beginning of the check of a start within which requests wait until it comes to what they
    /// need. Later they are refused, and are to be repeated after the other number of milliseconds.
    public static let uncheckedWaitMilliseconds = 1000
    public static let uncheckedMilliseconds: UInt32 = 100
    /// Seconds after which a failed storage is opened again, at first and at most; each attempt doubles them.
    public static let reopeningSecondsMin = 1
    public static let reopeningSecondsMax = 60
    /// Findings that one check of the storage lists.
    public static let storageFindingsMax = 10_000
    /// Mutations, and bytes of mutations, that may wait for the writer. Above it the service answers `busy`.
    public static let mutationsQueuedMax = 65_536
    public static let mutationBytesQueuedMax = 64 << 20

    // MARK: Secrets

    /// Seconds that a challenge or a grant is valid, at most. A generation of the root secret stays valid for that long
    /// after its rotation.
    public static let validitySecondsMax = 86_400
    /// How long the services that share a secret may take until all of them use the generation that was prepared.
    public static let secretSpreadSeconds = 86_400
    /// Seconds after which the service's durable clock is stored again.
    public static let clockStoredSeconds = 60

    // MARK: Audits

    /// Bytes of an audit's line besides its texts, and of one text in it before it is escaped.
    public static let auditLineFrameBytesMax = 512
    public static let auditTextBytesMax = 256
    /// Bytes of a line: a text of control characters becomes six times as long.
    public static let auditLineBytesMax = auditLineFrameBytesMax + 5 * 6 * auditTextBytesMax
    /// Bytes at the end of an audit's file in which a start looks for its last line, and for how far the storage was.
    public static let auditEndBytes = 1 << 20
    /// Lines that may wait for the disk. Above it the service answers `busy`, and counts refusals instead of writing
    /// them.
    public static let auditLinesWaitingMax = 65_536
    /// Bytes of lines that are written at once.
    public static let auditBatchBytesMax = 1 << 20
    /// Bytes of disk space that are reserved ahead of the lines that wait, and bytes that only lines about removals
    /// use when the disk is full.
    public static let auditAheadBytes = 16 << 20
    public static let auditReserveBytes = 1 << 20
    /// The part of `auditAheadBytes` that lines about refusals leave to changes: one of so many.
    public static let auditChangesPart = 4
    /// Lines about refusals and wrong keys that one peer (a principal or an address) gets at once, and in a second from
    /// then on.
    public static let auditPeerRefusalsAtOnce = 16
    public static let auditPeerRefusalsPerSecond = 1
    /// Such lines of all addresses together, at once and in a second from then on. Principals have as many for
    /// themselves.
    public static let auditRefusalsAtOnce = 128
    public static let auditRefusalsPerSecond = 4
    /// Peers whose lines about refusals are counted. The one that was counted first is forgotten for another one.
    public static let auditRefusalPeersMax = 4096
    /// Milliseconds after which one line sums up the refusals that got none.
    public static let auditSummaryMilliseconds: UInt64 = 1000
    /// Changes of which the service does not know whether they were made, so that their lines are due when the storage
    /// tells.
    public static let auditUndecidedMax = 2 * mutationsPerCommitMax
    /// Milliseconds between looks whether the storage tells, and those after which a change that a cluster's log lacks
    /// does not arrive any more: appending ends earlier.
    public static let auditUndecidedLookMilliseconds = 1000
    public static let auditUndecidedMilliseconds: UInt64 = 60_000

    // MARK: The collaboration layer

    /// Bytes of a request's JSON.
    public static let collaborationRequestBytesMax = 256 << 10
    /// Arrays and objects inside of each other in JSON.
    public static let jsonDepthMax = 32
    /// Bytes of a request's name.
    public static let requestNameBytesMax = 64
    /// UTF-8 bytes of a title, a name or another text for people, and of a link.
    public static let textBytesMax = 512
    public static let linkBytesMax = 2048
    /// UTF-8 bytes of the base of universal links.
    public static let linkBaseBytesMax = 1024
    /// Bytes of a language tag (RFC 5646, section 4.4.1).
    public static let languageBytesMax = 35
    /// Groups of share options, and options in all of them.
    public static let optionGroupsMax = 16
    public static let optionsMax = 64
    /// Participants added or removed by one request, and in one page.
    public static let participantsPerRequestMax = 400
    public static let participantsPerPageMax = 256
    /// Events in one post, and notices after which a page of a feed ends.
    public static let noticesPerPostMax = 64
    public static let noticesPerPageMax = 256
    /// Identities of one account in one collaboration.
    public static let identitiesPerAccountMax = 8
    /// Topics of all suspended queries, counted once for each query.
    public static let followedTopicsMax = 4 << 20
    /// Bytes after which a page of a feed ends.
    public static let noticesPageBytesMax = 512 << 10
    /// Participants that one account is linked to: their collaborations' notices make its feed.
    public static let linksPerAccountMax = 4096
    /// Milliseconds that a query may be suspended, and suspended queries of one connection.
    public static let followMillisecondsMax = 60_000
    public static let followsPerConnectionMax = 1024
    /// Suspended queries of all connections: 512 of each of 128 peers, and 512 that a newcomer finds free (`Shares`).
    public static let followsMax = 65_536 + 512
    /// Shelves that one share is put on, items in one page of a shelf, and items before a page.
    public static let recipientsPerShareMax = 128
    public static let highlightsPerPageMax = 64
    public static let shelfOffsetMax = 1 << 20
    /// Bytes after which a page of a shelf ends, conversations that are read for one item, and attributions of one item
    /// in an answer.
    public static let shelfPageBytesMax = 512 << 10
    public static let conversationsPerItemMax = 256
    public static let attributionsPerItemMax = 8
    /// Bytes of a thumbnail that the service stores, and of all of them. They are counted in 256 parts of equal size,
    /// by the first byte of their SHA-256, so that shares rarely wait for each other.
    public static let thumbnailBytesMax = 64 << 10
    public static let thumbnailsBytesMax = 1 << 30
    public static let thumbnailPartBytesMax = thumbnailsBytesMax / 256
    /// Links and invitations whose records elsewhere are removed with a collaboration. Readers ignore those that are
    /// left.
    public static let linksPerEndingMax = 1000
    public static let invitationsPerEndingMax = 1000
    /// Shelves that are told at once when a collaboration ends whose link is on them. Others leave it out when they are
    /// read next.
    public static let shelvesPerEndingMax = 500
    /// Participants, notices and custom items that the details of a collaboration show.
    public static let detailParticipantsMax = 100
    public static let detailNoticesMax = 20
    public static let customItemsMax = 32
    /// Accounts that have handed one collaboration over.
    public static let formerOwnersMax = 32
    /// Invitations and shares in one page.
    public static let invitationsPerPageMax = 256
    public static let sharesPerPageMax = 256
    /// Bytes of texts after which a page of shares ends.
    public static let sharesPageBytesMax = 256 << 10
    /// Bytes of a grant, exactly, and of a fingerprint of a collaboration or a device's key.
    public static let grantBytes = 112
    public static let fingerprintBytes = 16
    /// Grants in one check.
    public static let grantsPerCheckMax = 4096
    /// Evaluations of one request. The service evaluates it again when a record that it read has changed since.
    public static let decisionsPerRequestMax = 16
    /// Equal queries that are decided and answered together after a topic has changed.
    public static let queriesPerDecisionMax = 16
    /// Suspended queries that a worker resumes before other work gets its turn: so many after a change, and so many at
    /// their deadline.
    public static let queriesPerTurn = 16
    /// Topics of suspended queries that a worker removes before other work gets its turn, and those of one more query:
    /// after a change, at a deadline, and of closed connections, each so many.
    public static let topicsRemovedPerTurn = 1024
}
