// Package device lets devices without a browser in: RFC 8628. A device shows a short
// code, a person who has signed in elsewhere reads it and decides, and the device gets
// what it asked for the next time that it asks. Requests are rows found by the hashes of
// their codes; what the device gets is made when it is fetched, and stored nowhere.
package device
