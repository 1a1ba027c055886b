// Package notice tells people and machines what happened. An event is stored with
// what it tells of, a worker turns it into deliveries, one for each webhook that
// takes it and one for each person that it concerns, and tries each until it is
// taken or given up. What became of it stays readable for a while, and can be sent
// again.
//
// Mails are here too: what one holds, and how it is written down. Who carries them
// stands beside: folder on a laptop, ses on AWS.
//
// What must never come in: a secret, since events leave the gateway; and who the
// people of an organisation are, which a Directory knows.
package notice
