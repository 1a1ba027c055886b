// Package notice tells people and machines what happened. An event is stored together with
// the change that it reports. A worker turns it into deliveries: one for each webhook that
// wants it and one for each person that it concerns. It tries each until it is accepted or
// given up. The results can be read for a while, and a delivery can be sent again.
//
// Mails are here too: their contents and how they are encoded. The senders are packages
// below: folder on a laptop, ses on AWS.
//
// What must never come in: a secret, because events leave the gateway; and who the people
// of an organisation are, which a Directory knows.
package notice
