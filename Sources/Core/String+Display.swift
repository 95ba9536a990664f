extension String {
    /// The text in a form that is harmless on a terminal and in a log: each scalar that `Unicode.Scalar.isControl`
    /// tells is written as `\u001B`, as JSON does.
    package var escapingControls: String { escapingControls(besides: nil) }

    /// The same with one of those scalars left as it is, as the line feeds of a text of several lines.
    package func escapingControls(besides kept: Unicode.Scalar?) -> String {
        guard unicodeScalars.contains(where: { $0.isControl && $0 != kept }) else { return self }
        var text = ""
        for scalar in unicodeScalars {
            if scalar.isControl, scalar != kept {
                text += "\\u" + scalar.hexadecimalDigits
            } else {
                text.unicodeScalars.append(scalar)
            }
        }
        return text
    }

    /// The longest beginning of the text that has at most that many bytes of UTF-8 and ends between two characters. A
    /// character that is longer than that by itself is cut between two scalars.
    package func prefix(bytesMax: Int) -> String {
        guard utf8.count > bytesMax else { return self }
        var end = utf8.index(utf8.startIndex, offsetBy: bytesMax)
        while end > startIndex, end.samePosition(in: self) == nil { utf8.formIndex(before: &end) }
        if end == startIndex {
            end = utf8.index(utf8.startIndex, offsetBy: bytesMax)
            while end > startIndex, end.samePosition(in: unicodeScalars) == nil { utf8.formIndex(before: &end) }
        }
        return String(self[..<end])
    }
}
