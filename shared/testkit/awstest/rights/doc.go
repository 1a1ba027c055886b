// Package rights determines what a function uses of AWS, and whether its role allows it.
//
// A Recorder is a proxy of the emulators. It identifies the function by the access key that
// signed a request. It derives the actions, resources and condition keys that IAM would check,
// and rejects what the function's policy does not allow, as AWS does. It also records usage, so
// that a test can list unused permissions of a role.
package rights
