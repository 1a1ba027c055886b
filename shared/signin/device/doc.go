// Package device signs in devices without a browser: RFC 8628. A device shows a short code.
// A person who has signed in elsewhere reads it and decides. The device gets what it asked
// for with its next question. Requests are rows found by the hashes of their codes. What
// the device gets is made when it is fetched, and stored nowhere.
package device
