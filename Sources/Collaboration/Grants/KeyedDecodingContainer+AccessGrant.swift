extension KeyedDecodingContainer {
    /// Reads the grant of a request. An absent grant is the backend's own authority, so null is not the same as leaving
    /// the field out: it is refused.
    func decodeIfPresent(_ type: AccessGrant.Type, forKey key: Key) throws -> AccessGrant? {
        contains(key) ? try decode(type, forKey: key) : nil
    }
}
