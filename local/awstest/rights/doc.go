// Package rights finds out what a function uses of AWS, and whether its role allows it.
//
// A Recorder stands in front of the stand-ins. It knows the function by the access key that
// signed a request. It works out which actions, resources and condition keys IAM would
// check, and refuses what the function's policy does not allow, as AWS does. It also keeps
// what was used, so that a test can list what a role allows although nothing uses it.
package rights
