export * from '../../steps/tree-steps'
