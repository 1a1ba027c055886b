// Package notice notifies users and systems of events. An event is stored together with the
// change that it reports. A worker turns it into deliveries: one for each webhook that
// subscribes to it and one for each user that it concerns. It retries each until it is accepted
// or has failed too often. The results can be read for a while, and a delivery can be sent
// again.
//
// Mails are here too: their contents and encoding. The senders are packages below: folder for
// the local gateway, ses for AWS.
//
// Do not add secrets, because events leave the gateway, or the users of an organization, which
// a Directory resolves.
package notice
