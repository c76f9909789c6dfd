// Package web owns the HTTP surface: metrics, health, readiness, reload and the front page. It
// imports no package of this module; what it reports about the rest of the program it is given as
// functions.
//
// Invariants:
//
//  1. Asking /-/healthy, /-/ready or / changes nothing and calls only the function given for it.
//  2. Only POST /-/reload changes something, and a page of another site cannot make a browser send it.
//  3. Every request is bounded in time, header size and body size.
//  4. Run returns only when every listener is closed and every request has ended or was cut off.
//  5. TLS and basic authentication are those of the exporter-toolkit's web configuration file, and
//     they guard every path.
package web
