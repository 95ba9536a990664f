import Core
import Foundation

/// Collects the notices of one page, from one collaboration or several.
struct FeedReading {
    /// What some reader sees of a post.
    struct Post {
        let sequence: UInt64
        let stored: StoredPost
        /// The places of the texts that the reader sees, in their order, and whether the reader is addressed.
        var texts: [(place: Int, isReader: Bool)]

        /// The most bytes that these texts have in an answer.
        var byteCountMax: Int {
            texts.reduce(stored.members.count) { $0 + stored.byteCountMax(of: stored.texts[$1.place]) }
        }
    }

    /// The posts of a page.
    struct Page {
        var posts: [Post] = []
        var noticeCount = 0
        /// The sequence where the page ends; `nil` when there is nothing behind it.
        var end: UInt64?

        /// Appends the posts as JSON objects, separated by commas.
        func append(in language: Language, to json: inout [UInt8]) {
            for (index, post) in posts.enumerated() {
                if index > 0 { json.append(UInt8(ascii: ",")) }
                json.append(UInt8(ascii: "{"))
                json += post.stored.members
                json += Array(#","sequence":\#(post.sequence),"notices":["#.utf8)
                for (index, text) in post.texts.enumerated() {
                    if index > 0 { json.append(UInt8(ascii: ",")) }
                    post.stored.append(
                        post.stored.texts[text.place], addressing: text.isReader, language, to: &json)
                }
                json += Array("]}".utf8)
            }
        }
    }

    /// A post that may be on the page.
    private struct Candidate {
        let sequence: UInt64
        /// Of the collaboration, in `places`.
        let place: Int
        let reader: PersonIdentity?
    }

    private let limit: Int
    private let oldest: UInt64
    private var places: [[UInt8]] = []
    private var candidates: [Candidate] = []

    init(_ context: RuleContext, limit: Int) {
        self.limit = limit
        let seconds = context.now.timeIntervalSince1970 - context.settings.noticeSeconds
        oldest = UInt64(max(0, (seconds * 1000).rounded()))
    }

    /// Adds the posts of a collaboration behind `after` as `reader` sees them. Returns false when there is no such
    /// collaboration. It reads at most as many posts as a page holds, because a page holds the oldest posts of all
    /// collaborations.
    @discardableResult
    mutating func add(
        _ collaboration: CollaborationIdentifier, for reader: PersonIdentity?, after: UInt64,
        _ records: borrowing some RecordReader & ~Copyable
    ) throws(ServiceError) -> Bool {
        guard try records.record(RecordKeys.defaultPermission(collaboration)) != nil else { return false }
        let prefix = RecordKeys.notices(collaboration)
        var range = RecordRange.beginning(with: prefix)
        range.start = prefix + bigEndianBytes(after == .max ? after : after + 1)
        let place = places.count
        places.append(prefix)
        var found: [Candidate] = []
        try records.visitRecords(in: range) { key, _ in
            let sequence = key.suffix(8).reduce(0) { $0 << 8 | UInt64($1) }
            found.append(Candidate(sequence: sequence, place: place, reader: reader))
            return found.count <= limit
        }
        candidates += found
        // An account may take part in thousands of collaborations, of which few have new posts.
        if candidates.count > 8 * (limit + 1) { sortAndCut() }
        return true
    }

    /// Sorts the candidates and drops those that can't be on the page. It keeps `limit` + 1 posts, each for every
    /// identity that an account has in the collaboration.
    private mutating func sortAndCut() {
        candidates.sort { ($0.sequence, $0.place) < ($1.sequence, $1.place) }
        var sequences = 0
        var last: UInt64 = 0
        let end = candidates.firstIndex { candidate in
            if candidate.sequence != last {
                sequences += 1
                last = candidate.sequence
            }
            return sequences > limit + 1
        }
        if let end { candidates.removeSubrange(end...) }
    }

    /// The page: the first posts of all, each whole.
    mutating func finish(_ records: borrowing some RecordReader & ~Copyable) throws(ServiceError) -> Page {
        sortAndCut()
        var page = Page()
        var taken = 0
        var bytes = 0
        var last: UInt64 = 0
        for candidate in candidates {
            let isAgain = candidate.sequence == last
            if !isAgain {
                guard taken < limit, page.noticeCount < limit, bytes < Limits.noticesPageBytesMax else {
                    page.end = last
                    return page
                }
                taken += 1
                last = candidate.sequence
            }
            guard let post = try post(candidate, records) else { continue }
            bytes += post.byteCountMax
            // A post that several identities of an account see stands once on the page, with the texts of all of them.
            if isAgain {
                page.merge(post)
            } else if !post.texts.isEmpty {
                page.posts.append(post)
                page.noticeCount += post.texts.count
            }
        }
        return page
    }

    /// The last posts of one collaboration that hold `count` notices, each whole.
    func newest(_ count: Int, _ records: borrowing some RecordReader & ~Copyable) throws(ServiceError) -> Page {
        var page = Page()
        for candidate in candidates.reversed() where page.noticeCount < count {
            guard let post = try post(candidate, records), !post.texts.isEmpty else { continue }
            page.posts.insert(post, at: 0)
            page.noticeCount += post.texts.count
        }
        return page
    }

    /// The part of a post that a reader may see; `nil` when the post is too old.
    private func post(
        _ candidate: Candidate, _ records: borrowing some RecordReader & ~Copyable
    ) throws(ServiceError) -> Post? {
        let key = places[candidate.place] + bigEndianBytes(candidate.sequence)
        guard let record = try records.record(key) else { return nil }
        let stored = try StoredPost(record.value)
        guard stored.milliseconds >= oldest else { return nil }
        var texts: [(place: Int, isReader: Bool)] = []
        texts.reserveCapacity(stored.texts.count)
        for (place, text) in stored.texts.enumerated() where text.audience.includes(candidate.reader) {
            texts.append((place, text.addresses(candidate.reader)))
        }
        return Post(sequence: candidate.sequence, stored: stored, texts: texts)
    }
}

extension FeedReading.Page {
    /// Merges the part of a post that another identity of the same account may see. The account is addressed as each of
    /// its identities.
    mutating func merge(_ other: FeedReading.Post) {
        guard var post = posts.last, post.sequence == other.sequence else {
            guard !other.texts.isEmpty else { return }
            posts.append(other)
            noticeCount += other.texts.count
            return
        }
        noticeCount -= post.texts.count
        for text in other.texts {
            guard let index = post.texts.firstIndex(where: { $0.place == text.place }) else {
                post.texts.append(text)
                continue
            }
            if text.isReader { post.texts[index].isReader = true }
        }
        post.texts.sort { $0.place < $1.place }
        noticeCount += post.texts.count
        posts[posts.count - 1] = post
    }
}
