// Package converse is the wire shape of Amazon Bedrock's Converse and
// ConverseStream operations.
//
// Requests put what does not change from turn to turn first and the messages
// last, so that a conversation's bytes only grow at their end. Roles alternate:
// neighbours of one role are one message, tool results before the user's words.
// What only one maker's models know goes into additionalModelRequestFields, by
// chat.Traits.Family.
//
// Streams are AWS event streams. The stop reason comes before the usage.
package converse
