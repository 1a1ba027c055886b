// Package files stores blobs as files in a directory, one file per object under the
// object's key. Writes are atomic: a temporary file is renamed into place.
//
// An object cannot have a key that is a directory of another's ("a" beside "a/b"): Put
// fails. No other process may write files below the directory.
package files
