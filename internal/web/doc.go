// Package web owns the HTTP surface: metrics, health, readiness, reload and the status page. Of this
// module it imports the scheduler, for the words of the domain, and at most cadence; what it reports
// about the rest of the program it is given as functions.
//
// Invariants:
//
//  1. Asking /-/healthy, /-/ready or / changes nothing and calls only the function given for it.
//  2. Only POST /-/reload changes something, and a page of another site cannot make a browser send it.
//  3. Every request is bounded in time, header size and body size, and every address in connections. A
//     client that reads slowly costs the bytes of its answer. Clients cost less memory than the manifests
//     leave, however many they are, and the daemon goes on sending.
//  4. Run returns only when every listener is closed and every request has ended or was cut off.
//  5. TLS and basic authentication are those of the exporter-toolkit's web configuration file, and
//     they guard every path.
//  6. A page answers within two seconds, whatever the database does. The facts of one page are read at
//     a time, so that pages take at most one connection away from the passes.
//  7. E-mail addresses and upload links reach a template only through a masker.
//  8. No script runs on a page, and a page loads nothing from anywhere. A mail is shown in a frame
//     without any right.
package web
