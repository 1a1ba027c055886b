// Package local wraps data keys with a master key from a file, for a gateway without a key
// service.
//
// The file contains one key a line, "gateway-master-key-1 <base64 of 32 bytes>". The first key
// wraps; all of them unwrap. To rotate, add a new line at the top. The file decrypts every
// sealed value, and without it none can be decrypted: back it up, but not with the data.
package local
