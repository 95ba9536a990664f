/// What a frame is.
package enum FrameKind: UInt8, Sendable {
    case request = 1
    case answer = 2
    case error = 3
}
