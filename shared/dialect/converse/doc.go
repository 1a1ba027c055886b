// Package converse is the wire format of Amazon Bedrock's Converse and ConverseStream
// operations.
//
// Requests put what does not change from turn to turn first and the messages last, so that
// a conversation's bytes only grow at their end. User and assistant alternate: neighbours
// of one role become one message, with tool results before the user's words.
//
// System prompts at the beginning of the conversation go into the member system. For
// later ones, messages have had the role system since May 2026. The API accepts this role
// for every model, but most models reject it; chat.Traits.SystemTurns says which take it.
// Those want one such message after a turn of the user, either last or before a turn of
// the assistant, so a prompt elsewhere moves behind the user's turn. For other models,
// later prompts move in front of the conversation. Whatever moves is in the loss report.
//
// What only one maker's models know goes into additionalModelRequestFields, by
// chat.Traits.Family.
//
// Streams are AWS event streams. The stop reason comes before the usage.
package converse
