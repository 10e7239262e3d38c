package mcpconfig

// LooksSecret is looksSecret for tests.
var LooksSecret = looksSecret
