// Package local wraps data keys with a master key from a file, for a gateway
// without a key service.
//
// The file holds one key a line, "gateway-master-key-1 <base64 of 32 bytes>". The first key
// wraps; all of them unwrap. To rotate, put a new line on top. Whoever has the file can
// read every sealed value, and without it nobody can read any: it belongs in the backup,
// but not beside the data.
package local
