// Package app assembles the rooms from the stores it is given. Core is what
// every process needs; app/plane adds the data plane, app/console the
// administration, app/work the workers, so that each function links only its
// own. app/onaws builds Backends from AWS; the laptop builds its own.
package app
