// Package audit implements the audit log: who changed what, when, from where and with which
// outcome. The record of a successful change is written to the outbox in the transaction of the
// change, so neither exists without the other; the record of a rejected call is written
// separately. A Sender moves records from the outbox to a queue, a Worker from the queue to the
// audit table, which is only ever appended to.
//
// A record may be delivered twice and out of order: its id makes it one row.
//
// Do not store secrets. Bodies, queries and headers are masked before a record is created.
package audit
