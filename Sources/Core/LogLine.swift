/// A line for whoever operates the service.
package struct LogLine: Sendable, CustomStringConvertible {
    /// The place in the code that wrote a line. Lines of one place are alike.
    package struct Place: Sendable, Hashable {
        private let file: UInt
        private let line: UInt

        package init(_ file: StaticString, _ line: UInt) {
            // The address of the file's name, which is the same in every line of a file. A name that is one character
            // has no address, and no file has such a name.
            self.file = file.hasPointerRepresentation ? UInt(bitPattern: file.utf8Start) : 0
            self.line = line
        }
    }

    /// The request that a line is about.
    package struct Request: Sendable, Equatable {
        /// The number of its connection since the start, from 1.
        package let connection: UInt64
        /// Its number in its frame, which the client has chosen.
        package let number: UInt64

        package init(connection: UInt64, number: UInt64) {
            self.connection = connection
            self.number = number
        }
    }

    package let level: LogLevel
    /// One line of text. It names no person. It may have characters that steer a terminal.
    package let text: String
    package let request: Request?
    package let place: Place

    package init(_ level: LogLevel, _ text: String, request: Request? = nil, at place: Place) {
        self.level = level
        self.text = text
        self.request = request
        self.place = place
    }

    /// The text behind the level, unless that is `info`.
    package var description: String { level == .info ? text : "\(level.name.uppercased()): \(text)" }
}
