/// A number as it is written in JSON, for a reader that has to tell what is wrong with it.
package struct JSONNumber: Decodable, Sendable {
    package let text: String

    /// Reads a number of any size. Throws when the value is something else, or is not read by `JSON`.
    package init(from decoder: any Decoder) throws {
        guard let text = (decoder as? JSONValueDecoder)?.numberText else {
            throw DecodingError.dataCorrupted(
                DecodingError.Context(codingPath: decoder.codingPath, debugDescription: "not a number"))
        }
        self.text = text
    }
}
