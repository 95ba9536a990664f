/// Which files a process may use once it is in a sandbox. Files that it has opened before stay open.
package struct SandboxRules: Sendable {
    /// Folders in which files are read, written, made, renamed and removed, at any depth.
    package var writableFolders: [String]
    /// Folders in which files are removed.
    package var removalFolders: [String]
    /// Files that are read again and may be replaced by other files of the same names. So every file in their folders
    /// may be read, at any depth, and in the folders where links of their names lead. Of the root folder, only the file
    /// itself may be read.
    package var readableFiles: [String]
    /// Ports of TCP to which connections may be made, whatever the host. Where there are some, names of hosts may be
    /// looked up, too.
    package var connectionPorts: Set<UInt16>

    package init(
        writableFolders: [String] = [], removalFolders: [String] = [], readableFiles: [String] = [],
        connectionPorts: Set<UInt16> = []
    ) {
        self.writableFolders = writableFolders
        self.removalFolders = removalFolders
        self.readableFiles = readableFiles
        self.connectionPorts = connectionPorts
    }
}
