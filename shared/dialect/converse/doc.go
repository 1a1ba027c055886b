// Package converse is the wire shape of Amazon Bedrock's Converse and
// ConverseStream operations.
//
// Requests put what does not change from turn to turn first and the messages
// last, so that a conversation's bytes only grow at their end. User and assistant
// alternate: neighbours of one role are one message, tool results before the user's words.
// System prompts that lead the conversation stand in the member system. Later ones
// stay where they are, with the role system that messages may have since May 2026,
// where chat.Traits.SystemTurns says that the model takes it: the API takes the role for
// every model, and most models refuse it. Those that take it want one such message
// behind a turn of the user, last or before a turn of the assistant; a prompt that
// stands elsewhere moves behind the user's turn. For other models it moves in front of
// the conversation. Whatever moves is in the loss report.
//
// What only one maker's models know goes into additionalModelRequestFields, by
// chat.Traits.Family.
//
// Streams are AWS event streams. The stop reason comes before the usage.
package converse
